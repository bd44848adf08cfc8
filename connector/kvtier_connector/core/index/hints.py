"""What is said of blocks: how long to keep them, how dearly, and whose they are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kvtier_common.hints import RETAINED_SHARE, Priority


@dataclass(frozen=True, slots=True)
class BlockHint:
    """An opinion of some blocks. It never keeps other blocks from being stored."""

    until_s: float = 0.0  # by the index's clock: until then they are likely to be used again
    # HIGH: until then they leave after others. LOW: they leave first, or lose what they were promised
    priority: Priority = Priority.NORMAL
    tenant: str = ""  # whose they are; empty, or a name that the index does not know, for nobody's


NO_HINT: Final = BlockHint()


@dataclass(frozen=True, slots=True)
class TenantPart:
    """What of a tier's slots a tenant has, as shares from 0 to 1."""

    guaranteed: float = 0.0  # no other tenant's store makes it hold less
    most: float = 1.0  # of what it holds beyond that, its own blocks leave first


@dataclass(frozen=True, slots=True)
class Sharing:
    """How one tier is shared out."""

    retained_share: float = RETAINED_SHARE  # of its slots, what hints may hold
    tenants: Mapping[str, TenantPart] = field(default_factory=dict)  # by name

    @classmethod
    def of(cls, retained_share: float, tenants: Mapping[str, Mapping[str, float]]) -> "Sharing":
        """Return it as the settings say it."""
        return cls(retained_share, {name: TenantPart(**part) for name, part in tenants.items()})


ALL_FOR_ALL: Final = Sharing()
