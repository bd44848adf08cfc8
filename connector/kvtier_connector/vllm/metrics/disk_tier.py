"""What the disk tier tells Prometheus, through vLLM's own /metrics."""

from typing import Final

from vllm.v1.kv_offload.base import (
    OffloadingCounterMetadata,
    OffloadingGaugeMetadata,
    OffloadingMetricMetadata,
)

from kvtier_common.metrics import disk_tier as names
from kvtier_connector.core.disk.tier import DiskTier
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorStats

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
    names.EVICTED_CHUNKS: OffloadingCounterMetadata("Chunks that left the disk tier to make room."),
    names.CORRUPT_CHUNKS: OffloadingCounterMetadata(
        "Chunks on disk that were not as written; they were dropped and computed again."
    ),
    names.FAILED_CHUNKS: OffloadingCounterMetadata("Chunks that could not be read or written."),
    names.DROPPED_CHUNKS: OffloadingCounterMetadata(
        "Chunks not written: the disk did not keep up, or the bound on writes was reached."
    ),
}


class DiskMetrics:
    """Hands the disk tier's numbers out when they changed."""

    def __init__(self, disk: DiskTier, chunk_tokens: int) -> None:
        self._disk = disk
        self._chunk_tokens = chunk_tokens
        self._last: tuple[int, bool, bool] | None = None
        self._hits = 0

    def count_hits(self, count: int) -> None:
        """Count chunks that a request found on disk."""
        self._hits += count

    def add_to(
        self, stats: OffloadingConnectorStats | None, *, pays: bool = True
    ) -> OffloadingConnectorStats | None:
        """Add what changed since the last call."""
        disk = self._disk
        counts = disk.take_counts()
        now = disk.used, disk.is_down, pays
        added = {
            names.LOAD_BYTES: counts.load_bytes,
            names.LOAD_SECONDS: counts.load_seconds,
            names.STORE_BYTES: counts.store_bytes,
            names.STORE_SECONDS: counts.store_seconds,
            names.HIT_CHUNKS: self._hits,
            names.EVICTED_CHUNKS: counts.evicted,
            names.CORRUPT_CHUNKS: counts.corrupt,
            names.FAILED_CHUNKS: counts.failed,
            names.DROPPED_CHUNKS: counts.dropped,
        }
        if now == self._last and not any(added.values()):
            return stats
        self._hits = 0
        self._last = now
        stats = stats or OffloadingConnectorStats()
        stats.set_gauge(names.CAPACITY_BYTES, disk.slots * disk.block_bytes)
        stats.set_gauge(names.CAPACITY_TOKENS, disk.slots * self._chunk_tokens)
        stats.set_gauge(names.USED_BYTES, disk.used * disk.block_bytes)
        stats.set_gauge(names.CACHED_TOKENS, disk.used * self._chunk_tokens)
        stats.set_gauge(names.DEGRADED, int(disk.is_down))
        stats.set_gauge(names.PAYS, int(pays))
        for name, value in added.items():
            stats.increase_counter(name, value)
        return stats
