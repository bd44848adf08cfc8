"""The Gateway API inference extension 1.5: one index of 31,250 entries, whatever is configured.

Source: v1.5.0, pkg/epp/framework/plugins/requestcontrol/dataproducer/approximateprefix; two producers write
to one key, so two prefix scorers read the same, which is one scorer with the weights of both.
"""

from typing import Final

from kvtier_common.tier import Tier
from kvtier_scorer.config.flavors.gaie import FIXED_ENTRIES, MIN_BLOCK_TOKENS
from kvtier_scorer.config.model import PREFIX_SCORERS
from kvtier_scorer.simulate.engine.policy import Situation
from kvtier_scorer.simulate.policies.approximate_picker import ApproximatePicker, PrefixScorer

_DEFAULT_BLOCK_TOKENS: Final = 16
_DEFAULT_MOST_BLOCKS: Final = 256
"""types.go, defaultBlockSizeTokens and defaultMaxPrefixBlocks."""


def as_in_guide(situation: Situation) -> ApproximatePicker:
    """With the guide's configuration: `lruCapacityPerServer` is ignored, 256 blocks of a prompt are seen."""
    return _picker(situation, _DEFAULT_BLOCK_TOKENS, _DEFAULT_MOST_BLOCKS)


def as_sized(situation: Situation) -> ApproximatePicker:
    """As kvtier's operator configures it: 31,250 entries are the largest tier, whole prompts are seen."""
    pod = situation.pool.pod
    tokens = (pod.blocks[Tier.CPU] or pod.blocks[Tier.GPU]) * pod.block_tokens
    block_tokens = max(-(-tokens // FIXED_ENTRIES), MIN_BLOCK_TOKENS)
    longest = int(situation.trace.prompt_tokens.max())
    return _picker(situation, block_tokens, max(1, longest // block_tokens))


def _picker(situation: Situation, block_tokens: int, most_blocks: int) -> ApproximatePicker:
    weight = sum(situation.weights[PREFIX_SCORERS[tier]] for tier in (Tier.GPU, Tier.CPU))
    scorer = PrefixScorer(weight, block_tokens, FIXED_ENTRIES, most_blocks, with_rest=False)
    return ApproximatePicker(situation, [scorer])
