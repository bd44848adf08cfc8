"""Which prefix scorers a picker gets."""

from dataclasses import dataclass

from kvtier_scorer.config.model import Entries, PickerInput, entries_for


@dataclass(frozen=True, slots=True)
class PrefixTier:
    """One tier that a prefix scorer stands for.

    Attributes:
        name: `gpu`, `cpu` or `disk`.
        weight: Weight of its scorer, more than 0.
        entries: LRU capacity; None where the picker asks the engine.
    """

    name: str
    weight: int
    entries: int | None


def prefix_tiers(given: PickerInput, tokens_per_entry: int) -> tuple[PrefixTier, ...]:
    """The tiers that exist and have a weight, fastest first. Every engine has a device cache."""
    weights, tokens = given.weights, given.tokens
    candidates = (
        ("gpu", weights.gpu_prefix, True, tokens.gpu),
        ("cpu", weights.cpu_prefix, tokens.cpu is not None, tokens.cpu),
        ("disk", weights.disk_prefix, tokens.disk is not None, tokens.disk),
    )
    return tuple(
        PrefixTier(name, weight, entries_for(size, tokens_per_entry))
        for name, weight, exists, size in candidates
        if exists and weight
    )


def unknown_gpu(tiers: tuple[PrefixTier, ...]) -> bool:
    """Whether a scorer stands for a device cache whose size the picker has to ask for."""
    return any(tier.name == "gpu" and tier.entries is None for tier in tiers)


def entries_of(tiers: tuple[PrefixTier, ...]) -> Entries:
    """The capacities of `tiers`, by name."""
    by_name = {tier.name: tier.entries for tier in tiers}
    return Entries(by_name.get("gpu"), by_name.get("cpu"), by_name.get("disk"))
