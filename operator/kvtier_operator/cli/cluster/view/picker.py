"""What the endpoint picker of a resource believes, in its own numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_common.metrics.text import Families, read_labels
from kvtier_common.tier import Tier
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.planning.flavors import flavor_traits

_PODS: Final = b"kvtier_picker_pods"
_STALE: Final = b"kvtier_picker_pods_stale"
_PICKS: Final = b"kvtier_picker_picks_total"
_PROMPT: Final = b"kvtier_picker_prompt_tokens_total"
_PREDICTED: Final = b"kvtier_picker_predicted_hit_tokens_total"
_BLOCKS: Final = b"kvtier_picker_index_blocks"
_ROOM: Final = b"kvtier_picker_tier_capacity_blocks"
_RATIOS: Final = tuple(
    (f"{name}_sum".encode(), f"{name}_count".encode())
    for name in (flavor_traits(flavor).hit_ratio for flavor in Flavor)
    if name
)
"""Sum and count of matched shares, by flavours that have such a histogram."""
_LABELS: Final = {tier.label: tier for tier in Tier}
READ: Final = (
    *(_PODS, _STALE, _PICKS, _PROMPT, _PREDICTED, _BLOCKS, _ROOM),
    *(name for names in _RATIOS for name in names),
)
"""Names of the samples of which something is read."""


@dataclass(frozen=True, slots=True)
class PickerFigures:
    """What the pickers that answered say.

    Attributes:
        pickers: How many answered.
        known_engines: Engines that may be picked; None where the picker does not tell, as for all below.
        stale_engines: Of those, without a recent reading of their metrics.
        picks: Requests that got an engine.
        believed_share: Mean share of a prompt that the picked engine was believed to hold, 0 to 1.
        index_share: How full the index is by tier, 0 to 1.
    """

    pickers: int
    known_engines: int | None
    stale_engines: int | None
    picks: int | None
    believed_share: float | None
    index_share: Mapping[Tier, float]


def picker_figures(pickers: Sequence[Families]) -> PickerFigures:
    """The figures of a resource's pickers; one that runs beside another knows the same engines."""

    def most(name: bytes) -> int | None:
        return max((int(each.total(name)) for each in pickers if each.of(name)), default=None)

    blocks, room = _by_tier(pickers, _BLOCKS), _by_tier(pickers, _ROOM)
    return PickerFigures(
        pickers=len(pickers),
        known_engines=most(_PODS),
        stale_engines=most(_STALE),
        picks=sum(int(each.total(_PICKS)) for each in pickers) if most(_PODS) is not None else None,
        believed_share=_believed(pickers),
        index_share={tier: blocks.get(tier, 0) / size for tier, size in room.items() if size},
    )


def _believed(pickers: Sequence[Families]) -> float | None:
    """Ours counts tokens by tier, which overlap: the largest tier holds what the others do."""
    asked = sum(each.total(_PROMPT) for each in pickers)
    if asked:
        return max(_by_tier(pickers, _PREDICTED).values(), default=0.0) / asked
    total = sum(each.total(name) for each in pickers for name, _ in _RATIOS)
    count = sum(each.total(name) for each in pickers for _, name in _RATIOS)
    return total / count if count else None


def _by_tier(pickers: Sequence[Families], name: bytes) -> dict[Tier, float]:
    found: dict[Tier, float] = {}
    for each in pickers:
        for labels, value in each.of(name):
            label = read_labels(labels).get("tier", "")
            if label in _LABELS:
                found[_LABELS[label]] = found.get(_LABELS[label], 0.0) + value
    return found
