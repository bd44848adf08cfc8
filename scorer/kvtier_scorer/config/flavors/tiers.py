"""Which prefix scorers a picker gets."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import PickerInput, entries_for
from kvtier_scorer.config.scorer_names import PREFIX_SCORERS


@dataclass(frozen=True, slots=True)
class PrefixTier:
    """One tier that a prefix scorer stands for.

    Attributes:
        tier: Which.
        weight: Weight of its scorer, more than 0.
        entries: LRU capacity; None where the picker asks the engine.
    """

    tier: Tier
    weight: int
    entries: int | None

    @property
    def name(self) -> str:
        """The tier's, such as `cpu`."""
        return self.tier.label


def prefix_tiers(given: PickerInput, tokens_per_entry: int) -> tuple[PrefixTier, ...]:
    """The tiers that exist and have a weight, fastest first. Every engine has a device cache."""
    weights, tokens = given.weights, given.tokens
    return tuple(
        PrefixTier(tier, weight, entries_for(tokens[tier], tokens_per_entry))
        for tier, scorer in PREFIX_SCORERS.items()
        if tier in tokens and (weight := weights.get(scorer, 0))
    )


def unknown_gpu(tiers: tuple[PrefixTier, ...]) -> bool:
    """Whether a scorer stands for a device cache whose size the picker has to ask for."""
    return any(tier.entries is None for tier in tiers)


def entries_of(tiers: tuple[PrefixTier, ...]) -> Mapping[Tier, int | None]:
    """The capacities of `tiers`."""
    return {each.tier: each.entries for each in tiers}
