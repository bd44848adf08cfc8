"""Names in an engine's /metrics of what KVTier's CPU tier does, from the first scheduler step on.

The prefix is vLLM's: an engine that starts again in one process unregisters metrics by it. Prometheus adds
`_total` to counters.
"""

from typing import Final

CAPACITY_BYTES: Final = "vllm:kvtier_cpu_capacity_bytes"
PINNED_BYTES: Final = "vllm:kvtier_cpu_pinned_bytes"
GROWING: Final = "vllm:kvtier_cpu_growing"
CAPACITY_TOKENS: Final = "vllm:kvtier_cpu_capacity_tokens"
USED_BYTES: Final = "vllm:kvtier_cpu_used_bytes"
CACHED_TOKENS: Final = "vllm:kvtier_cpu_cached_tokens"
EVICTED_CHUNKS: Final = "vllm:kvtier_cpu_evicted_chunks"
FAILED_CHUNKS: Final = "vllm:kvtier_cpu_failed_chunks"
HIT_CHUNKS: Final = "vllm:kvtier_cpu_hit_chunks"
MISSED_CHUNKS: Final = "vllm:kvtier_cpu_missed_chunks"
