"""The scheduler's side: upstream's questions and orders, answered from the index."""

from collections.abc import Collection, Iterable

from typing_extensions import override
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import OffloadingConnectorStats
from vllm.v1.kv_offload.base import (
    Locality,
    LookupResult,
    Medium,
    OffloadingEvent,
    OffloadingManager,
    OffloadKey,
    PrepareStoreOutput,
    ReqContext,
    RequestOffloadingContext,
    TierFilter,
)
from vllm.v1.metrics.cache_hit_source import CacheHitSource

from kvtier_connector.core.index import BlockIndex, BlockState
from kvtier_connector.core.slots import TierGeometry
from kvtier_connector.vllm.metrics import TierMetrics
from kvtier_connector.vllm.transfer import SlotSpec

_DEFAULT_KEY_BYTES = 36
"""SHA-256, vLLM's default prefix-caching hash, and four bytes for the KV cache group."""

_RESULTS = {
    BlockState.ABSENT: LookupResult.MISS,
    BlockState.PENDING: LookupResult.HIT_PENDING,
    BlockState.READY: LookupResult.HIT,
    BlockState.BAD: LookupResult.MISS,
}


class KVTierManager(OffloadingManager):  # type: ignore[misc] # vLLM has no types
    """Knows which chunks the tier holds and where.

    Args:
        geometry: the tier's slots.
        tokens_per_chunk: for each KV cache group, the tokens of a chunk.
        with_events: whether KV events are published.
    """

    def __init__(
        self, geometry: TierGeometry, tokens_per_chunk: dict[int, int], *, with_events: bool
    ) -> None:
        self._index = BlockIndex(geometry.slots, _DEFAULT_KEY_BYTES)
        self._metrics = TierMetrics(geometry, tokens_per_chunk)
        self._events: list[OffloadingEvent] | None = [] if with_events else None

    @override
    def lookup(self, key: OffloadKey, req_context: ReqContext) -> LookupResult:
        """Tell whether a chunk can be loaded."""
        tiers = req_context.load_tier_filter
        if tiers is not TierFilter.ALL and not tiers.allows(Medium.CPU, Locality.LOCAL):
            return LookupResult.MISS
        return _RESULTS[self._index.state(key)]

    @override
    def get_load_source(self, key: OffloadKey, req_context: ReqContext) -> CacheHitSource:
        """Name this tier in vLLM's own hit statistics."""
        return CacheHitSource.HOST

    @override
    def on_new_request(self, req_context: ReqContext) -> RequestOffloadingContext:
        """Have only new chunks offered, not those that a request found cached."""
        return RequestOffloadingContext()

    @override
    def prepare_load(self, keys: Collection[OffloadKey], req_context: ReqContext) -> SlotSpec:
        """Protect chunks until `complete_load` and say where they are."""
        return SlotSpec(self._index.pin(list(keys)))

    @override
    def complete_load(self, keys: Collection[OffloadKey], req_context: ReqContext) -> None:
        """Let chunks be evicted again, as the most recently used."""
        self._index.unpin(list(keys))

    @override
    def touch(self, keys: Collection[OffloadKey], req_context: ReqContext) -> None:
        """Make chunks the most recently used."""
        self._index.touch(list(keys))

    @override
    def prepare_store(self, keys: Collection[OffloadKey], req_context: ReqContext) -> PrepareStoreOutput:
        """Give slots to chunks that the tier lacks.

        A request's own chunks are never evicted for its later ones: of a prompt that the tier cannot hold,
        the beginning stays.
        """
        ordered = list(dict.fromkeys(keys))
        self._fit_key_length(ordered)
        reservation = self._index.reserve(
            ordered, keep=lambda key: req_context.get_offload_key_position(OffloadKey(key)) is not None
        )
        evicted = [OffloadKey(key) for key in reservation.evicted]
        self._metrics.evicted(evicted)
        self._publish(evicted, removed=True)
        return PrepareStoreOutput(
            keys_to_store=[OffloadKey(key) for key in reservation.keys],
            store_spec=SlotSpec(reservation.slots),
            evicted_keys=evicted,
        )

    @override
    def complete_store(
        self, keys: Collection[OffloadKey], req_context: ReqContext, success: bool = True
    ) -> None:
        """Make stored chunks loadable, or drop those whose store failed."""
        if not success:
            self.invalidate(keys)
        ready = [OffloadKey(key) for key in self._index.commit(list(keys))]
        self._metrics.stored(ready)
        self._publish(ready, removed=False)

    def invalidate(self, keys: Collection[OffloadKey]) -> None:
        """Make chunks a miss from now on, because a transfer of them failed."""
        lost = [OffloadKey(key) for key in self._index.invalidate(list(keys))]
        self._metrics.failed(lost)
        self._publish(lost, removed=True)

    @override
    def take_events(self) -> Iterable[OffloadingEvent]:
        """Return what was stored and removed since the last call."""
        if self._events:
            yield from self._events
            self._events.clear()

    @override
    def reset_cache(self) -> None:
        """Forget everything. Upstream waits for transfers in flight before it reuses a slot."""
        self._index.clear()
        self._metrics.cleared()

    @override
    def get_stats(self) -> OffloadingConnectorStats | None:
        """Return what changed since the last call, or None."""
        return self._metrics.take()

    def _fit_key_length(self, keys: list[OffloadKey]) -> None:
        """Make the index anew for another hash than the default: its length shows with the first key."""
        if keys and len(keys[0]) != self._index.key_bytes:
            self._index = BlockIndex(self._index.capacity, len(keys[0]))

    def _publish(self, keys: list[OffloadKey], *, removed: bool) -> None:
        if self._events is not None and keys:
            self._events.append(OffloadingEvent(keys, Medium.CPU, removed))
