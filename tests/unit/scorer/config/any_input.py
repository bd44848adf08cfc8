"""Whatever a picker's configuration may be rendered from."""

from hypothesis import strategies as st

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.config.model import SCORER_NAMES, PickerInput, ScorerWeights, TierTokens

_TOKENS = st.integers(1, 10**10)
INPUTS = st.builds(
    PickerInput,
    weights=st.fixed_dictionaries(dict.fromkeys(SCORER_NAMES, st.integers(0, 1000))).map(ScorerWeights),
    tokens=st.fixed_dictionaries(
        {Tier.GPU: st.none() | _TOKENS}, optional=dict.fromkeys(OF_A_POD[1:], _TOKENS)
    ).map(TierTokens),
    engine_block_tokens=st.sampled_from([1, 16, 32, 64, 128, 784]),
    max_prefix_tokens=st.none() | st.integers(1, 10**7),
)
