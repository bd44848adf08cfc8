"""The prompt tokens that each tier supplied, as an engine counts them at admission."""

from typing import Final

from kvtier_common.metrics.text import Families, read_labels
from kvtier_common.tier import Tier

CACHED_BY_SOURCE: Final = b"vllm:prompt_tokens_cached_by_source_total"
"""vLLM 0.32 and 0.33, v1/metrics/loggers.py; the values of `source` are v1/metrics/cache_hit_source.py's."""
_TIER_OF_SOURCE: Final = {
    "device": Tier.GPU,
    "host": Tier.CPU,
    "external_unspecified": Tier.CPU,
    "disk": Tier.DISK,
}
"""Of a connector that does not tell, all is taken for the first tier beyond the device."""


def cached_tokens(found: Families) -> dict[Tier, int]:
    """Tokens by tier since the engine started, all its data-parallel parts together."""
    cached = dict.fromkeys(Tier, 0)
    for labels, value in found.of(CACHED_BY_SOURCE):
        tier = _TIER_OF_SOURCE.get(read_labels(labels).get("source", ""))
        if tier is not None:
            cached[tier] += int(value)
    return cached
