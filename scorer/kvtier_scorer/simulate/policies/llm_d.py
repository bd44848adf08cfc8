"""llm-d-router 0.9 and 0.10: two producers with entries of 64 tokens, a scorer for each."""

from collections.abc import Mapping
from typing import Final

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import PREFIX_SCORERS
from kvtier_scorer.simulate.engine.policy import Situation
from kvtier_scorer.simulate.policies.approximate_picker import ApproximatePicker, PrefixScorer, guide_entries

_MIN_BLOCK_TOKENS: Final = 64
"""dataproducer/approximateprefix/plugin.go, minBlockSizeTokens."""
_MOST_PREFIX_TOKENS: Final = 131_072
"""The same package's types.go, defaultMaxPrefixTokens."""
_GUIDE_ENTRIES: Final = 82_000
"""`lruCapacityPerServer` of the guide's CPU producer, for a tier of 100 GiB."""


def as_in_guide(situation: Situation) -> ApproximatePicker:
    """With the guide's numbers (llm-d, guides/tiered-prefix-cache, from 0.5 on).

    The GPU producer tunes itself: it takes the engine's number of blocks as a number of 64-token entries. The
    CPU producer has 82,000 entries for 100 GiB, and as many more for a larger tier; true are 6,400.
    """
    pod = situation.pool.pod
    cpu_entries = guide_entries(pod, _GUIDE_ENTRIES)
    return _picker(situation, {Tier.GPU: pod.blocks[Tier.GPU], Tier.CPU: cpu_entries})


def as_sized(situation: Situation) -> ApproximatePicker:
    """With the capacities that kvtier's operator writes: the tiers' tokens over the tokens of an entry."""
    pod = situation.pool.pod
    block_tokens = _block_tokens(situation)
    sized = {tier: -(-pod.blocks[tier] * pod.block_tokens // block_tokens) for tier in (Tier.GPU, Tier.CPU)}
    return _picker(situation, sized)


def _block_tokens(situation: Situation) -> int:
    return max(_MIN_BLOCK_TOKENS, situation.pool.pod.block_tokens)


def _picker(situation: Situation, held: Mapping[Tier, int]) -> ApproximatePicker:
    block_tokens = _block_tokens(situation)
    return ApproximatePicker(
        situation,
        [
            PrefixScorer(
                situation.weights[PREFIX_SCORERS[tier]],
                block_tokens,
                entries,
                _MOST_PREFIX_TOKENS // block_tokens,
                with_rest=True,
            )
            for tier, entries in held.items()
            if entries
        ],
    )
