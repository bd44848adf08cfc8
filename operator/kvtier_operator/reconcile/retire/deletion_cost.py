"""What it costs to lose an engine, by how full it says that its tiers are."""

from typing import Final

from kvtier_common.metrics.text import Families
from kvtier_common.metrics.tier_metrics import CACHED_TOKENS, CAPACITY_TOKENS
from kvtier_common.tier import BEYOND_DEVICE

READ: Final = (*CACHED_TOKENS.values(), *CAPACITY_TOKENS.values())
"""Names of the samples of which something is read."""
_STEP: Final = 10
"""Percent: each change is a write to the API server, and Kubernetes asks for few of them."""
_FULL: Final = 100


def fill_percent(found: Families) -> float | None:
    """How full all tiers beyond the device are together, 0 to 100; None where the engine does not say.

    Engines of one Deployment have tiers of one size, so the one that is least full holds least.
    """
    capacity = sum(found.total(CAPACITY_TOKENS[tier]) for tier in BEYOND_DEVICE)
    held = sum(found.total(CACHED_TOKENS[tier]) for tier in BEYOND_DEVICE)
    return min(held / capacity, 1.0) * _FULL if capacity > 0 else None


def deletion_cost(fill: float, before: str) -> str:
    """The annotation's value: a multiple of ten, the one that was there while it is less than a step away.

    Args:
        fill: How full the tiers are, in percent.
        before: The value that is there; empty for none.
    """
    if before.isascii() and before.isdigit() and abs(int(before) - fill) < _STEP:
        return before
    return str(round(fill / _STEP) * _STEP)
