"""Names in an engine's /metrics of what KVTier's disk tier does; as for `cpu_tier`."""

from typing import Final

CAPACITY_BYTES: Final = "vllm:kvtier_disk_capacity_bytes"
CAPACITY_TOKENS: Final = "vllm:kvtier_disk_capacity_tokens"
USED_BYTES: Final = "vllm:kvtier_disk_used_bytes"
CACHED_TOKENS: Final = "vllm:kvtier_disk_cached_tokens"
DEGRADED: Final = "vllm:kvtier_disk_degraded"
PAYS: Final = "vllm:kvtier_disk_pays"
LOAD_BYTES: Final = "vllm:kvtier_disk_load_bytes"
LOAD_SECONDS: Final = "vllm:kvtier_disk_load_seconds"
STORE_BYTES: Final = "vllm:kvtier_disk_store_bytes"
STORE_SECONDS: Final = "vllm:kvtier_disk_store_seconds"
HIT_CHUNKS: Final = "vllm:kvtier_disk_hit_chunks"
EVICTED_CHUNKS: Final = "vllm:kvtier_disk_evicted_chunks"
CORRUPT_CHUNKS: Final = "vllm:kvtier_disk_corrupt_chunks"
FAILED_CHUNKS: Final = "vllm:kvtier_disk_failed_chunks"
DROPPED_CHUNKS: Final = "vllm:kvtier_disk_dropped_chunks"
