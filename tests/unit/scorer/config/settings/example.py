"""The configuration of the documentation, as kvtier renders it, and as it is read."""

from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import PickerInput, ScorerWeights, TierTokens
from kvtier_scorer.config.settings.model import PickerSettings, ScorerKind

EXAMPLE = PickerInput(
    weights=ScorerWeights(queue=2, kv_cache_utilization=2, gpu_prefix=1, cpu_prefix=1, disk_prefix=0),
    tokens=TierTokens(gpu=None, cpu=409_600, disk=None),
    engine_block_tokens=16,
    max_prefix_tokens=40_960,
)


TEXT = picker_config("builtin", EXAMPLE).text


def weights(parsed: PickerSettings) -> dict[ScorerKind, float]:
    return {scorer.kind: scorer.weight for scorer in parsed.scorers}
