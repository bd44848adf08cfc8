"""The tiers that a pod's prefix cache has, fastest first."""

from enum import IntEnum
from typing import Self


class Tier(IntEnum):
    """A tier; its value is its place in arrays that have one row a tier."""

    GPU = 0
    CPU = 1
    DISK = 2

    @property
    def label(self) -> str:
        """The name in configuration, metrics and logs: `gpu`, `cpu` or `disk`."""
        return self.name.lower()

    @classmethod
    def of(cls, label: str) -> Self:
        """The tier of a label.

        Raises:
            KeyError: There is none of that name.
        """
        return cls[label.upper()]
