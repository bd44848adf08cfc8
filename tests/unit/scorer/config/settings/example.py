"""The configuration of the documentation, as kvtier renders it, and as it is read."""

from kvtier_common.tier import Tier
from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import PickerInput, ScorerWeights, TierTokens
from kvtier_scorer.config.settings import PickerSettings

EXAMPLE = PickerInput(
    weights=ScorerWeights({"queue": 2, "kv_cache_utilization": 2, "gpu_prefix": 1, "cpu_prefix": 1}),
    tokens=TierTokens({Tier.GPU: None, Tier.CPU: 409_600}),
    engine_block_tokens=16,
    max_prefix_tokens=40_960,
)


TEXT = picker_config("builtin", EXAMPLE).text


def weights(parsed: PickerSettings) -> dict[str, float]:
    return {scorer.name: scorer.weight for scorer in parsed.scorers}
