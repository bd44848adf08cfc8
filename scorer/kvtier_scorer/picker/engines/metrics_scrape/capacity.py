"""Capacities of the index from what pods say that their tiers hold, bounded by the plan."""

from collections.abc import Mapping
from typing import Final

from kvtier_common.tier import Tier

_MOST: Final = 1 << 20
"""Of a tier that nobody planned, such as the device cache: 16 million tokens in blocks of 16."""
_ROOM: Final = 2
"""A tier may hold so many times what was planned: a hybrid model's tokens may cost less than that."""
_TOLERANCE: Final = 0.05
"""Capacities that differ by less stay: engines of one plan differ by some blocks, and a resize evicts."""


def most_entries(planned: Mapping[Tier, int | None]) -> Mapping[Tier, int]:
    """The most that a pod's word is taken for, in entries of the index.

    Args:
        planned: What the configuration says of each tier; None where the engine has to be asked.
    """
    return {tier: _MOST if entries is None else _ROOM * entries for tier, entries in planned.items()}


def new_entries(
    entries: Mapping[Tier, int],
    capacity_tokens: Mapping[Tier, int],
    block_tokens: int,
    most: Mapping[Tier, int],
) -> Mapping[Tier, int]:
    """Capacities to change, in entries of the index.

    Args:
        entries: What the index has now; a tier that is not in it has no index and gets none.
        capacity_tokens: What the pod reported; what it did not report stays.
        block_tokens: Tokens of an entry.
        most: The most entries of each tier, see `most_entries`.

    Returns:
        ceil(tokens / block_tokens), within `most`, for the tiers in which that differs by more than
        5 percent.
    """
    reported = {
        tier: min(-(-tokens // block_tokens), most[tier])
        for tier, tokens in capacity_tokens.items()
        if tier in entries
    }
    return {
        tier: true
        for tier, true in reported.items()
        if abs(true - entries[tier]) > _TOLERANCE * entries[tier]
    }
