"""What the disk tier tells Prometheus, through vLLM's own /metrics."""

from typing import Final

from vllm.v1.kv_offload.base import (
    OffloadingCounterMetadata,
    OffloadingGaugeMetadata,
    OffloadingMetricMetadata,
)

from kvtier_common.metrics import disk_tier as names

DEFINITIONS: Final[dict[str, OffloadingMetricMetadata]] = {
    names.CAPACITY_BYTES: OffloadingGaugeMetadata("Bytes of chunks that the disk tier can hold."),
    names.CAPACITY_TOKENS: OffloadingGaugeMetadata("Tokens that the disk tier can hold."),
    names.USED_BYTES: OffloadingGaugeMetadata("Bytes of chunks that the disk tier holds or is writing."),
    names.CACHED_TOKENS: OffloadingGaugeMetadata("Tokens whose KV the disk tier holds or is writing."),
    names.DEGRADED: OffloadingGaugeMetadata(
        "1 while the disk cannot be used and memory serves alone, else 0."
    ),
    names.PAYS: OffloadingGaugeMetadata(
        "0 while all prompts are computed sooner than read from disk, which is not used then; else 1."
    ),
    names.LOAD_BYTES: OffloadingCounterMetadata("Bytes read from the disk tier."),
    names.LOAD_SECONDS: OffloadingCounterMetadata("Seconds that reads took, added up; many run at a time."),
    names.STORE_BYTES: OffloadingCounterMetadata("Bytes written to the disk tier."),
    names.STORE_SECONDS: OffloadingCounterMetadata("Seconds that writes took, added up; many run at a time."),
    names.HIT_CHUNKS: OffloadingCounterMetadata("Chunks that a request found on disk."),
    names.WARMED_CHUNKS: OffloadingCounterMetadata(
        "Chunks that were read from disk into memory before the engine served."
    ),
    names.EVICTED_CHUNKS: OffloadingCounterMetadata("Chunks that left the disk tier to make room."),
    names.CORRUPT_CHUNKS: OffloadingCounterMetadata(
        "Chunks on disk that were not as written; they were dropped and computed again."
    ),
    names.FAILED_CHUNKS: OffloadingCounterMetadata("Chunks that could not be read or written."),
    names.DROPPED_CHUNKS: OffloadingCounterMetadata(
        "Chunks not written: the disk did not keep up, or the bound on writes was reached."
    ),
}
