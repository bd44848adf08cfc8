"""The one table of the tiers that a prefix cache has, fastest first; all names follow from it."""

from enum import IntEnum
from typing import Final

from typing_extensions import Self


class Tier(IntEnum):
    """A tier; its value is its place in arrays of one row a tier. Those that engines share come last."""

    shared: bool  # whether engines have one together: any pod hits it, so the picker knows nothing of it

    GPU = 0
    CPU = 1
    DISK = 2
    REMOTE = 3, True

    def __new__(cls, value: int, shared: bool = False) -> Self:
        """The member of a value."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.shared = shared
        return member

    @property
    def label(self) -> str:
        """The name in resources, configuration, metrics and logs: `gpu`, `cpu`, `disk` or `remote`."""
        return self.name.lower()

    @classmethod
    def of(cls, label: str) -> Self:
        """The tier of a label. Raises KeyError: there is none of that name."""
        return cls[label.upper()]


BEYOND_DEVICE: Final = tuple(Tier)[1:]  # those that the KV connector fills; the device's own cache is vLLM's
OF_A_POD: Final = tuple(tier for tier in Tier if not tier.shared)  # those that each pod has for itself
