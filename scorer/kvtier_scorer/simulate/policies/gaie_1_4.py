"""The Gateway API inference extension 1.2 to 1.4: two prefix scorers in blocks of the engine."""

from typing import Final

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import PREFIX_SCORERS
from kvtier_scorer.simulate.engine.policy import Situation
from kvtier_scorer.simulate.policies.approximate_picker import ApproximatePicker, PrefixScorer, guide_entries

_DEFAULT_MOST_BLOCKS: Final = 256
"""v1.4.0, scheduling/scorer/prefix/plugin.go, DefaultMaxPrefixBlocks: the first 4,096 tokens of a prompt."""
_GUIDE_ENTRIES: Final = 41_000
"""`lruCapacityPerServer` of the guide's cpu-prefix-cache-scorer (llm-d 0.4.0), for a tier of 100 GiB."""


def as_in_guide(situation: Situation) -> ApproximatePicker:
    """With the guide's numbers, 41,000 entries for 100 GiB where 25,600 are true, and 256 blocks of a prompt.

    A prompt of 30,000 tokens then takes 256 entries of either index rather than 1,875, so both hold several
    times as many prompts as the engines do, and hardly ever let one go.
    """
    pod = situation.pool.pod
    cpu_entries = guide_entries(pod, _GUIDE_ENTRIES)
    return _picker(situation, cpu_entries, _DEFAULT_MOST_BLOCKS)


def as_sized(situation: Situation) -> ApproximatePicker:
    """As kvtier's operator configures it: true capacities, whole prompts seen."""
    longest = int(situation.trace.prompt_tokens.max())
    pod = situation.pool.pod
    return _picker(situation, pod.blocks[Tier.CPU], max(1, longest // pod.block_tokens))


def _picker(situation: Situation, cpu_entries: int, most_blocks: int) -> ApproximatePicker:
    pod, weights = situation.pool.pod, situation.weights
    held = {Tier.GPU: pod.blocks[Tier.GPU], Tier.CPU: cpu_entries}
    return ApproximatePicker(
        situation,
        [
            PrefixScorer(
                weights[PREFIX_SCORERS[tier]], pod.block_tokens, entries, most_blocks, with_rest=False
            )
            for tier, entries in held.items()
            if entries
        ],
    )
