"""What the remote tier tells Prometheus, through vLLM's own /metrics."""

from typing import Final

from vllm.v1.kv_offload.base import (
    OffloadingCounterMetadata,
    OffloadingGaugeMetadata,
    OffloadingMetricMetadata,
)

from kvtier_common.metrics import remote_tier as names

DEFINITIONS: Final[dict[str, OffloadingMetricMetadata]] = {
    names.CAPACITY_BYTES: OffloadingGaugeMetadata("Bytes of chunks that the remote tier is planned to hold."),
    names.CAPACITY_TOKENS: OffloadingGaugeMetadata("Tokens that the remote tier is planned to hold."),
    names.USED_BYTES: OffloadingGaugeMetadata("Bytes that the remote tier's store holds, of all engines."),
    names.CACHED_TOKENS: OffloadingGaugeMetadata("Tokens whose KV fits what the store holds."),
    names.DEGRADED: OffloadingGaugeMetadata(
        "1 while the remote tier cannot be used and the others serve alone, else 0."
    ),
    names.PAYS: OffloadingGaugeMetadata(
        "0 while all prompts are computed sooner than read from there, which is not done then; else 1."
    ),
    names.LOAD_BYTES: OffloadingCounterMetadata("Bytes read from the remote tier."),
    names.LOAD_SECONDS: OffloadingCounterMetadata("Seconds that reads took, added up; many run at a time."),
    names.STORE_BYTES: OffloadingCounterMetadata("Bytes written to the remote tier."),
    names.STORE_SECONDS: OffloadingCounterMetadata("Seconds that writes took, added up; many run at a time."),
    names.HIT_CHUNKS: OffloadingCounterMetadata("Chunks that a request found in the remote tier."),
    names.WARMED_CHUNKS: OffloadingCounterMetadata(
        "Chunks that were read from the remote tier into memory before the engine served."
    ),
    names.ABSENT_CHUNKS: OffloadingCounterMetadata("Chunks that were asked for and not there."),
    names.VANISHED_CHUNKS: OffloadingCounterMetadata(
        "Chunks that were there when asked for and had gone when they were read."
    ),
    names.EVICTED_CHUNKS: OffloadingCounterMetadata("Always 0: the store makes room by itself."),
    names.CORRUPT_CHUNKS: OffloadingCounterMetadata(
        "Chunks that were not as written; they were dropped and computed again."
    ),
    names.FAILED_CHUNKS: OffloadingCounterMetadata("Chunks that could not be read or written."),
    names.DROPPED_CHUNKS: OffloadingCounterMetadata(
        "Chunks not written: the store did not keep up, or the bound on writes was reached."
    ),
}
