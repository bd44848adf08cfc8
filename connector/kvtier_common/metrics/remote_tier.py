"""Names in an engine's /metrics of what KVTier's remote tier does; as for `cpu_tier`.

Capacity and what is used are the store's, of all engines together: each engine tells the same.
"""

from typing import Final

CAPACITY_BYTES: Final = "vllm:kvtier_remote_capacity_bytes"
CAPACITY_TOKENS: Final = "vllm:kvtier_remote_capacity_tokens"
USED_BYTES: Final = "vllm:kvtier_remote_used_bytes"
CACHED_TOKENS: Final = "vllm:kvtier_remote_cached_tokens"
DEGRADED: Final = "vllm:kvtier_remote_degraded"
PAYS: Final = "vllm:kvtier_remote_pays"
LOAD_BYTES: Final = "vllm:kvtier_remote_load_bytes"
LOAD_SECONDS: Final = "vllm:kvtier_remote_load_seconds"
STORE_BYTES: Final = "vllm:kvtier_remote_store_bytes"
STORE_SECONDS: Final = "vllm:kvtier_remote_store_seconds"
HIT_CHUNKS: Final = "vllm:kvtier_remote_hit_chunks"
WARMED_CHUNKS: Final = "vllm:kvtier_remote_warmed_chunks"
ABSENT_CHUNKS: Final = "vllm:kvtier_remote_absent_chunks"  # asked for, and not there
VANISHED_CHUNKS: Final = "vllm:kvtier_remote_vanished_chunks"  # there when asked for, gone when read
EVICTED_CHUNKS: Final = "vllm:kvtier_remote_evicted_chunks"  # always 0: the store makes room by itself
CORRUPT_CHUNKS: Final = "vllm:kvtier_remote_corrupt_chunks"
FAILED_CHUNKS: Final = "vllm:kvtier_remote_failed_chunks"
DROPPED_CHUNKS: Final = "vllm:kvtier_remote_dropped_chunks"
