"""What the CPU tier tells Prometheus, through vLLM's own /metrics.

vLLM itself counts bytes, times and sizes of loads and stores (``vllm:kv_offload_*``), and the tokens asked of
and found in tiers beyond the device (``vllm:external_prefix_cache_queries`` and ``_hits``).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Final

from vllm.v1.kv_offload.base import (
    OffloadingCounterMetadata,
    OffloadingGaugeMetadata,
    OffloadingMetricMetadata,
    OffloadKey,
    get_offload_group_idx,
)

from kvtier_common.metrics import cpu_tier as names
from kvtier_connector.config import ConnectorConfig, Policy
from kvtier_connector.core.index.slots import TierGeometry
from kvtier_connector.core.region.growth import Grown
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorStats

DEFINITIONS: Final[dict[str, OffloadingMetricMetadata]] = {
    names.CAPACITY_BYTES: OffloadingGaugeMetadata(
        "Bytes that the CPU tier can hold, all ranks together; it grows after the start."
    ),
    names.PINNED_BYTES: OffloadingGaugeMetadata(
        "Bytes of the CPU tier that are locked in memory: on a GPU page-locked for DMA, all ranks together."
    ),
    names.GROWING: OffloadingGaugeMetadata("1 while the CPU tier is still being taken and locked, else 0."),
    names.CAPACITY_TOKENS: OffloadingGaugeMetadata("Tokens that the CPU tier can hold."),
    names.USED_BYTES: OffloadingGaugeMetadata(
        "Bytes of the CPU tier that hold loadable chunks, all ranks together."
    ),
    names.CACHED_TOKENS: OffloadingGaugeMetadata("Tokens whose KV the CPU tier holds, loadable."),
    names.EVICTED_CHUNKS: OffloadingCounterMetadata("Chunks that left the CPU tier to make room."),
    names.HIT_CHUNKS: OffloadingCounterMetadata(
        "Chunks loaded from the CPU tier, those among them that had come from disk first."
    ),
    names.MISSED_CHUNKS: OffloadingCounterMetadata("Chunks computed and stored because no tier had them."),
    names.FAILED_CHUNKS: OffloadingCounterMetadata(
        "Chunks that left the CPU tier because a transfer failed."
    ),
}


@dataclass(frozen=True, slots=True)
class TierFacts:
    """What stays as it is of the tiers: the labels of a newer vLLM's `vllm:kv_offload_config_info`.

    The first four have the names and meanings of those of vLLM's own CPU tier (v1/kv_offload/cpu/common.py),
    for dashboards that know that. They are what is aimed at, all ranks together: the tier grows beside the
    engine. The disk's size is 0 without one.
    """

    cpu_num_chunks: int
    cpu_blocks_per_chunk: int
    cpu_kv_cache_size_bytes: int
    cpu_kv_cache_size_tokens: int
    cpu_memlock: Policy
    cpu_hugepages: Policy
    disk_size_bytes: int

    @classmethod
    def of(
        cls, settings: ConnectorConfig, geometry: TierGeometry, tokens_per_chunk: Mapping[int, int]
    ) -> "TierFacts":
        """Gather them."""
        return cls(
            cpu_num_chunks=geometry.slots,
            cpu_blocks_per_chunk=settings.blocks_per_chunk,
            cpu_kv_cache_size_bytes=geometry.slots * geometry.chunk_bytes,
            cpu_kv_cache_size_tokens=geometry.tokens(geometry.slots, tokens_per_chunk),
            cpu_memlock=settings.memlock,
            cpu_hugepages=settings.hugepages,
            disk_size_bytes=settings.disk_capacity_bytes,
        )

    def labels(self) -> dict[str, str | int]:
        """Return them as vLLM takes them."""
        return {
            name: str(value) if isinstance(value, Policy) else value for name, value in asdict(self).items()
        }


LABELS = tuple(field.name for field in fields(TierFacts))
"""The labels' names, which vLLM wants to know before there is a tier."""


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

    def grow(self, grown: Grown) -> None:
        """Take note of how far the tier has grown."""
        self._changed = self._changed or grown != self._there
        self._there = grown

    def count_hits(self, count: int) -> None:
        """Count chunks that are loaded."""
        self._hits += count
        self._changed = True

    def count_misses(self, count: int) -> None:
        """Count chunks that had to be computed."""
        self._missed += count
        self._changed = self._changed or count > 0

    def count_stores(self, keys: Sequence[bytes]) -> None:
        """Count chunks that became loadable."""
        self._count(keys, 1)

    def count_evictions(self, keys: Sequence[bytes]) -> None:
        """Count chunks that made room."""
        self._evicted += len(keys)
        self._count(keys, -1)

    def count_failures(self, keys: Sequence[bytes]) -> None:
        """Count chunks lost to a failed transfer."""
        self._failed += len(keys)
        self._count(keys, -1)

    def clear(self) -> None:
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
        stats.set_gauge(names.CAPACITY_BYTES, there.slots * geometry.chunk_bytes)
        stats.set_gauge(names.PINNED_BYTES, there.pinned_bytes)
        stats.set_gauge(names.GROWING, int(not there.is_over))
        stats.set_gauge(names.CAPACITY_TOKENS, geometry.tokens(there.slots, self._tokens_per_chunk))
        stats.set_gauge(names.USED_BYTES, self._chunks.total() * geometry.chunk_bytes)
        stats.set_gauge(
            names.CACHED_TOKENS,
            max((self._chunks[group] * size for group, size in self._tokens_per_chunk.items())),
        )
        stats.increase_counter(names.EVICTED_CHUNKS, self._evicted)
        stats.increase_counter(names.FAILED_CHUNKS, self._failed)
        stats.increase_counter(names.HIT_CHUNKS, self._hits)
        stats.increase_counter(names.MISSED_CHUNKS, self._missed)
        self._evicted = self._failed = self._hits = self._missed = 0
        return stats

    def _count(self, keys: Sequence[bytes], sign: int) -> None:
        if keys:
            self._changed = True
            for key in keys:
                self._chunks[get_offload_group_idx(OffloadKey(key))] += sign
