"""What pickers are configured from: inputs that differ in every way that the configuration depends on."""

from dataclasses import replace
from typing import Final

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import PickerInput, ScorerWeights, TierTokens

# Qwen3-32B in bf16 takes 262,144 bytes a token: 100 GiB hold 409,600 tokens.
EXAMPLE: Final = PickerInput(
    weights=ScorerWeights({"queue": 2, "kv_cache_utilization": 2, "gpu_prefix": 1, "cpu_prefix": 1}),
    tokens=TierTokens({Tier.GPU: 120_000, Tier.CPU: 409_600}),
    engine_block_tokens=16,
    max_prefix_tokens=40_960,
)
_ALL_WEIGHTS: Final = ScorerWeights(
    {"queue": 1, "kv_cache_utilization": 2, "gpu_prefix": 3, "cpu_prefix": 4, "disk_prefix": 5}
)
_NO_WEIGHTS: Final = ScorerWeights({"queue": 0, "kv_cache_utilization": 0, "gpu_prefix": 0, "cpu_prefix": 0})

INPUTS: Final = {
    "example": EXAMPLE,
    "device-cache-unknown": replace(EXAMPLE, tokens=EXAMPLE.tokens | {Tier.GPU: None}),
    "three-tiers": replace(
        EXAMPLE,
        weights=_ALL_WEIGHTS,
        tokens=TierTokens({Tier.GPU: 120_000, Tier.CPU: 409_600, Tier.DISK: 4_194_304}),
    ),
    "device-alone": replace(EXAMPLE, tokens=TierTokens({Tier.GPU: 120_000})),
    "device-alone-unknown": replace(EXAMPLE, tokens=TierTokens({Tier.GPU: None})),
    "queue-alone": replace(EXAMPLE, weights=_NO_WEIGHTS | {"queue": 1}),
    "cpu-prefix-alone": replace(EXAMPLE, weights=_NO_WEIGHTS | {"cpu_prefix": 1}),
    "large-weights": replace(EXAMPLE, weights=EXAMPLE.weights | {"queue": 1000, "gpu_prefix": 999}),
    "large-blocks": replace(EXAMPLE, engine_block_tokens=128),
    "odd-blocks": replace(EXAMPLE, engine_block_tokens=784),
    "small-tiers": replace(EXAMPLE, tokens=TierTokens({Tier.GPU: 1_000, Tier.CPU: 2_000})),
    "long-prompts": replace(EXAMPLE, max_prefix_tokens=1_000_000),
    "prompts-of-unknown-length": replace(EXAMPLE, max_prefix_tokens=None),
    "prompts-shorter-than-a-block": replace(EXAMPLE, engine_block_tokens=128, max_prefix_tokens=100),
    "huge-disk": replace(
        EXAMPLE, weights=_ALL_WEIGHTS, tokens=TierTokens({Tier.GPU: None, Tier.CPU: 10**8, Tier.DISK: 10**10})
    ),
}
