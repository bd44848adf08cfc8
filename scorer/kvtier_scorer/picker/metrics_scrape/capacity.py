"""The closed loop: what a pod says that its tiers hold decides how much the index believes of it."""

from collections.abc import Mapping
from typing import Final

from kvtier_scorer.tier import Tier

_MOST: Final = 1 << 30
"""More than any pod has, and few enough for the index to count."""
_TOLERANCE: Final = 0.05
"""Capacities that differ by less stay: engines of one plan differ by some blocks, and a resize evicts."""


def new_entries(
    entries: Mapping[Tier, int], capacity_tokens: Mapping[Tier, int], block_tokens: int
) -> Mapping[Tier, int]:
    """Capacities to change, in entries of the index.

    Args:
        entries: What the index has now; a tier that is not in it has no index and gets none.
        capacity_tokens: What the pod told; what it did not tell stays.
        block_tokens: Tokens of an entry.

    Returns:
        ceil(tokens / block_tokens) for the tiers in which that differs by more than 5 percent.
    """
    told = {
        tier: min(-(-tokens // block_tokens), _MOST)
        for tier, tokens in capacity_tokens.items()
        if tier in entries
    }
    return {
        tier: true for tier, true in told.items() if abs(true - entries[tier]) > _TOLERANCE * entries[tier]
    }
