"""Names in an engine's /metrics of what its tiers hold and supply: one table for operator and picker."""

from typing import Final

from kvtier_common.metrics.text import Families, read_labels
from kvtier_common.tier import BEYOND_DEVICE, Tier

DEVICE: Final = b"vllm:cache_config_info"
"""vLLM 0.32 and 0.33, v1/metrics/loggers.py; labels are the fields of config/cache.py."""
DEVICE_TOKENS: Final = "kv_cache_size_tokens"  # a label of `DEVICE`: of each engine
DEVICE_BLOCK: Final = "block_size"
"""A label of `DEVICE`: tokens of a block that vLLM uses, the smallest where groups of layers differ."""
DEVICE_BLOCKS: Final = ("num_gpu_blocks", DEVICE_BLOCK)
"""Labels of `DEVICE` whose product is of all data-parallel engines already (v1/engine/core_client.py)."""
OFFLOADED: Final = b"vllm:kv_offload_config_info"  # vLLM 0.33, from its first scheduler step on
OFFLOADED_TOKENS: Final = "cpu_kv_cache_size_tokens"
"""A label of `OFFLOADED`: what the CPU tier will hold when it has grown."""


def _by_tier(what: str) -> dict[Tier, bytes]:
    """As kvtier_connector/vllm/metrics/ has them, from the first scheduler step on; not of other backends."""
    return {tier: f"vllm:kvtier_{tier.label}_{what}".encode() for tier in BEYOND_DEVICE}


CAPACITY_TOKENS: Final = _by_tier("capacity_tokens")
CAPACITY_BYTES: Final = _by_tier("capacity_bytes")
CACHED_TOKENS: Final = _by_tier("cached_tokens")
USED_BYTES: Final = _by_tier("used_bytes")
EVICTED_CHUNKS: Final = _by_tier("evicted_chunks_total")
CACHED_BY_SOURCE: Final = b"vllm:prompt_tokens_cached_by_source_total"
"""vLLM 0.32 and 0.33, v1/metrics/loggers.py; the values of `source` are v1/metrics/cache_hit_source.py's."""
_TIER_OF_SOURCE: Final = {tier.label: tier for tier in BEYOND_DEVICE} | {
    "device": Tier.GPU,
    "host": Tier.CPU,
}
_UNSPECIFIED: Final = "external_unspecified"
"""What a connector does not tell, and its remote tier: vLLM has no other word for a store."""


def cached_tokens(families: Families) -> dict[Tier, int]:
    """Tokens by tier since the engine started, all its data-parallel parts together."""
    cached = dict.fromkeys(Tier, 0)
    # of an engine without a remote tier it is taken for the first tier beyond the device
    unspecified = Tier.REMOTE if families.of(CACHED_TOKENS[Tier.REMOTE]) else Tier.CPU
    tiers = {**_TIER_OF_SOURCE, _UNSPECIFIED: unspecified}
    for labels, value in families.of(CACHED_BY_SOURCE):
        tier = tiers.get(read_labels(labels).get("source", ""))
        if tier is not None:
            cached[tier] += int(value)
    return cached
