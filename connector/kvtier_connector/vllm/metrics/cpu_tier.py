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
    """Keeps the tier's numbers and hands out those that changed: most engine steps change none.

    A hybrid model stores each token once for every KV cache group; tokens are those of the fullest group.
    """

    def __init__(self, geometry: TierGeometry, tokens_per_chunk: dict[int, int], slots_there: int) -> None:
        self._geometry = geometry
        self._chunk_bytes = geometry.chunk_bytes
        self._there = Grown(slots_there, 0, is_over=slots_there == geometry.slots)
        self._tokens_per_chunk = tokens_per_chunk
        self._chunks = dict.fromkeys(tokens_per_chunk, 0)
        self._told_gauges: dict[str, int] = {}
        self._counted = dict.fromkeys(
            (names.EVICTED_CHUNKS, names.FAILED_CHUNKS, names.HIT_CHUNKS, names.MISSED_CHUNKS), 0
        )
        """Since the last call of `take`; zeros at first, so that every series begins."""
        self._changed = True

    def grow(self, grown: Grown) -> None:
        """Take note of how far the tier has grown."""
        self._changed = self._changed or grown != self._there
        self._there = grown

    def count_hits(self, count: int) -> None:
        """Count chunks that are loaded."""
        self._count(names.HIT_CHUNKS, count)

    def count_misses(self, count: int) -> None:
        """Count chunks that had to be computed."""
        self._count(names.MISSED_CHUNKS, count)

    def count_stores(self, keys: Sequence[bytes]) -> None:
        """Count chunks that became loadable."""
        self._hold(keys, 1)

    def count_evictions(self, keys: Sequence[bytes]) -> None:
        """Count chunks that made room."""
        self._count(names.EVICTED_CHUNKS, len(keys))
        self._hold(keys, -1)

    def count_failures(self, keys: Sequence[bytes]) -> None:
        """Count chunks lost to a failed transfer."""
        self._count(names.FAILED_CHUNKS, len(keys))
        self._hold(keys, -1)

    def clear(self) -> None:
        """Start over, empty."""
        self._chunks = dict.fromkeys(self._tokens_per_chunk, 0)
        self._changed = True

    def take(self) -> OffloadingConnectorStats | None:
        """Return the numbers that changed since the last call."""
        if not self._changed:
            return None
        self._changed = False
        there, tokens_per_chunk = self._there, self._tokens_per_chunk
        gauges = {
            names.CAPACITY_BYTES: there.slots * self._chunk_bytes,
            names.PINNED_BYTES: there.pinned_bytes,
            names.GROWING: int(not there.is_over),
            names.CAPACITY_TOKENS: self._geometry.tokens(there.slots, tokens_per_chunk),
            names.USED_BYTES: sum(self._chunks.values()) * self._chunk_bytes,
            names.CACHED_TOKENS: max(
                [self._chunks[group] * size for group, size in tokens_per_chunk.items()]
            ),
        }
        stats = OffloadingConnectorStats()
        for name, value in gauges.items():
            if self._told_gauges.get(name) != value:
                stats.set_gauge(name, value)
        for name, count in self._counted.items():
            stats.increase_counter(name, count)
        self._told_gauges = gauges
        self._counted.clear()
        return stats

    def _count(self, name: str, count: int) -> None:
        if count:
            self._counted[name] = self._counted.get(name, 0) + count
            self._changed = True

    def _hold(self, keys: Sequence[bytes], sign: int) -> None:
        if not keys:
            return
        self._changed = True
        if len(self._chunks) == 1:  # no look at each key
            (group,) = self._chunks
            self._chunks[group] += sign * len(keys)
            return
        for group, count in Counter(map(get_offload_group_idx, keys)).items():
            self._chunks[group] += sign * count
