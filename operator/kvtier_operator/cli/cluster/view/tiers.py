"""A row for each tier of a resource: how large, how full, how useful."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvtier_common.tier import BEYOND_DEVICE, Tier
from kvtier_operator.cli.cluster.view.engines import EngineFigures


@dataclass(frozen=True, slots=True)
class TierRow:
    """One tier, of all engines that answered; of one engine, as planned, where none did.

    Attributes:
        tier: Which.
        capacity_bytes: Its size; None where nobody tells.
        capacity_tokens: The same in tokens.
        filled: How full it is, 0 to 1; of the device, what requests under way use. None where nobody tells.
        hit_rate: Share of all prompt tokens that it supplied; None before the first prompt.
        saved_s: Seconds that computing these tokens would have taken, less those that loading them took;
            None where nothing was computed yet to compare with.
    """

    tier: Tier
    capacity_bytes: int | None
    capacity_tokens: int | None
    filled: float | None
    hit_rate: float | None
    saved_s: float | None


def tier_rows(status_tiers: Mapping[str, Any], figures: EngineFigures) -> tuple[TierRow, ...]:
    """Those that the resource has, from fast to slow.

    Args:
        status_tiers: `status.tiers`: sizes of one engine.
        figures: What engines count.
    """
    there = (tier for tier in Tier if tier.label in status_tiers or figures.hit_tokens[tier])
    return tuple(_row(tier, status_tiers.get(tier.label) or {}, figures) for tier in there)


def _row(tier: Tier, planned: Mapping[str, Any], figures: EngineFigures) -> TierRow:
    many = figures.engines or 1
    return TierRow(
        tier=tier,
        capacity_bytes=figures.capacity_bytes.get(tier) or _times(planned.get("bytes"), many),
        capacity_tokens=figures.capacity_tokens.get(tier) or _times(planned.get("tokens"), many),
        filled=figures.used_share.get(tier),
        hit_rate=figures.hit_tokens[tier] / figures.asked_tokens if figures.asked_tokens else None,
        saved_s=_saved_s(tier, figures),
    )


def _times(size: int | None, many: int) -> int | None:
    return None if size is None else size * many


def _saved_s(tier: Tier, figures: EngineFigures) -> float | None:
    """Loads are not told apart by tier: each has the part of their time that it has of their tokens."""
    if figures.prefill_tokens_per_s is None:
        return None
    hit = figures.hit_tokens[tier]
    loaded = sum(figures.hit_tokens[each] for each in BEYOND_DEVICE)
    load_s = figures.load_s * hit / loaded if tier in BEYOND_DEVICE and loaded else 0.0
    return hit / figures.prefill_tokens_per_s - load_s
