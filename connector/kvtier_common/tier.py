"""The one table of the tiers that a pod's prefix cache has, fastest first; all names follow from it."""

from enum import IntEnum
from typing import Final, Self


class Tier(IntEnum):
    """A tier; its value is its place in arrays that have one row a tier."""

    GPU = 0
    CPU = 1
    DISK = 2

    @property
    def label(self) -> str:
        """The name in resources, configuration, metrics and logs: `gpu`, `cpu` or `disk`."""
        return self.name.lower()

    @classmethod
    def of(cls, label: str) -> Self:
        """The tier of a label. Raises KeyError: there is none of that name."""
        return cls[label.upper()]


BEYOND_DEVICE: Final = tuple(Tier)[1:]  # those that the KV connector fills; the device's own cache is vLLM's
