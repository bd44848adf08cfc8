"""What the tier tells Prometheus, through vLLM's own /metrics.

vLLM itself counts bytes, times and sizes of loads and stores (``vllm:kv_offload_*``), and the tokens asked of
and found in tiers beyond the device (``vllm:external_prefix_cache_queries`` and ``_hits``).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from vllm.v1.kv_offload.base import (
    OffloadingCounterMetadata,
    OffloadingGaugeMetadata,
    OffloadingMetricMetadata,
    OffloadKey,
    get_offload_group_idx,
)

from kvtier_common.metrics.cpu_tier import (
    CACHED_TOKENS,
    CAPACITY_BYTES,
    CAPACITY_TOKENS,
    EVICTED_CHUNKS,
    FAILED_CHUNKS,
    GROWING,
    HIT_CHUNKS,
    MISSED_CHUNKS,
    PINNED_BYTES,
    USED_BYTES,
)
from kvtier_connector.core.index.slots import TierGeometry
from kvtier_connector.core.region.growth_words import Grown
from kvtier_connector.vllm.upstream.classes import OffloadingConnectorStats

DEFINITIONS: Final[dict[str, OffloadingMetricMetadata]] = {
    CAPACITY_BYTES: OffloadingGaugeMetadata(
        "Bytes that the CPU tier can hold, all ranks together; it grows after the start."
    ),
    PINNED_BYTES: OffloadingGaugeMetadata(
        "Bytes of the CPU tier that are locked in memory: on a GPU page-locked for DMA, all ranks together."
    ),
    GROWING: OffloadingGaugeMetadata("1 while the CPU tier is still being taken and locked, else 0."),
    CAPACITY_TOKENS: OffloadingGaugeMetadata("Tokens that the CPU tier can hold."),
    USED_BYTES: OffloadingGaugeMetadata(
        "Bytes of the CPU tier that hold loadable chunks, all ranks together."
    ),
    CACHED_TOKENS: OffloadingGaugeMetadata("Tokens whose KV the CPU tier holds, loadable."),
    EVICTED_CHUNKS: OffloadingCounterMetadata("Chunks that left the CPU tier to make room."),
    HIT_CHUNKS: OffloadingCounterMetadata(
        "Chunks loaded from the CPU tier, those among them that had come from disk first."
    ),
    MISSED_CHUNKS: OffloadingCounterMetadata("Chunks computed and stored because no tier had them."),
    FAILED_CHUNKS: OffloadingCounterMetadata("Chunks that left the CPU tier because a transfer failed."),
}


class TierMetrics:
    """Keeps the tier's numbers and hands them out only when they changed: most engine steps change none.

    A hybrid model stores each token once for every KV cache group; tokens are those of the fullest group.
    """

    def __init__(self, geometry: TierGeometry, tokens_per_chunk: dict[int, int], slots_there: int) -> None:
        self._geometry = geometry
        self._there = Grown(slots_there, 0, is_over=slots_there == geometry.slots)
        self._tokens_per_chunk = tokens_per_chunk
        self._chunks: Counter[int] = Counter()
        self._evicted = 0
        self._failed = 0
        self._hits = 0
        self._missed = 0
        self._changed = True

    def grown(self, grown: Grown) -> None:
        """Take note of how far the tier has grown."""
        self._changed = self._changed or grown != self._there
        self._there = grown

    def hit(self, count: int) -> None:
        """Count chunks that are loaded."""
        self._hits += count
        self._changed = True

    def missed(self, count: int) -> None:
        """Count chunks that had to be computed."""
        self._missed += count
        self._changed = self._changed or count > 0

    def stored(self, keys: Sequence[bytes]) -> None:
        """Count chunks that became loadable."""
        self._count(keys, 1)

    def evicted(self, keys: Sequence[bytes]) -> None:
        """Count chunks that made room."""
        self._evicted += len(keys)
        self._count(keys, -1)

    def failed(self, keys: Sequence[bytes]) -> None:
        """Count chunks lost to a failed transfer."""
        self._failed += len(keys)
        self._count(keys, -1)

    def cleared(self) -> None:
        """Start over, empty."""
        self._chunks.clear()
        self._changed = True

    def take(self) -> OffloadingConnectorStats | None:
        """Return the numbers if they changed since the last call."""
        if not self._changed:
            return None
        self._changed = False
        geometry = self._geometry
        stats = OffloadingConnectorStats()
        there = self._there
        stats.set_gauge(CAPACITY_BYTES, there.slots * geometry.chunk_bytes)
        stats.set_gauge(PINNED_BYTES, there.pinned_bytes)
        stats.set_gauge(GROWING, int(not there.is_over))
        stats.set_gauge(CAPACITY_TOKENS, geometry.tokens(there.slots, self._tokens_per_chunk))
        stats.set_gauge(USED_BYTES, self._chunks.total() * geometry.chunk_bytes)
        stats.set_gauge(
            CACHED_TOKENS, max((self._chunks[group] * size for group, size in self._tokens_per_chunk.items()))
        )
        stats.increase_counter(EVICTED_CHUNKS, self._evicted)
        stats.increase_counter(FAILED_CHUNKS, self._failed)
        stats.increase_counter(HIT_CHUNKS, self._hits)
        stats.increase_counter(MISSED_CHUNKS, self._missed)
        self._evicted = self._failed = self._hits = self._missed = 0
        return stats

    def _count(self, keys: Sequence[bytes], sign: int) -> None:
        if keys:
            self._changed = True
            for key in keys:
                self._chunks[get_offload_group_idx(OffloadKey(key))] += sign
