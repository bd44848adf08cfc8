"""The scheduler's side: upstream's questions and orders, answered from the index."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override
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

from kvtier_common.hints import NO_HINTS
from kvtier_common.tier import Tier
from kvtier_connector.config import KEY_BYTES
from kvtier_connector.core.behind.break_even import TokenSpan
from kvtier_connector.core.behind.tier import TierBehind
from kvtier_connector.core.index.hints import ALL_FOR_ALL, BlockHint, Sharing
from kvtier_connector.core.index.index import BlockIndex, BlockState, WithheldSlots
from kvtier_connector.core.index.slots import TierGeometry
from kvtier_connector.core.region.growth import Grown
from kvtier_connector.vllm.behind.promotions import PendingRead
from kvtier_connector.vllm.behind.tiering import NeverWriteBehind, Tiering, hint_in
from kvtier_connector.vllm.hints import HintReader, RequestHints
from kvtier_connector.vllm.metrics.cpu_tier import TierFacts, TierMetrics
from kvtier_connector.vllm.metrics.hints import HintMetrics
from kvtier_connector.vllm.offloading.steps import SlotSpec
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorStats

_RESULTS = {
    BlockState.ABSENT: LookupResult.MISS,
    BlockState.PENDING: LookupResult.HIT_PENDING,
    BlockState.READY: LookupResult.HIT,
    BlockState.BAD: LookupResult.MISS,
}
_SOURCES = {Tier.CPU: CacheHitSource.HOST, Tier.DISK: CacheHitSource.DISK}
_MEDIA = {Tier.CPU: Medium.CPU, Tier.DISK: Medium.STORAGE}
"""Of the tiers that are this engine's alone: what others share is no reason to send it a request."""


@dataclass(frozen=True, slots=True)
class NeverStore:
    """In the state of a request's context: nothing of it is stored, in any tier."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """In the state of a request's context: what it asks for has been counted."""

    preemptions: int  # that the request had had by then


class KVTierManager(OffloadingManager):  # type: ignore[misc] # vLLM has no types
    """Knows which chunks the tier holds and where."""

    def __init__(  # noqa: PLR0913 - what an engine knows of itself
        self,
        geometry: TierGeometry,
        tokens_per_chunk: dict[int, int],
        *,
        with_events: bool,
        slots_there: int | None = None,
        facts: TierFacts | None = None,
        sharing: Sharing = ALL_FOR_ALL,
    ) -> None:
        self.geometry = geometry
        self._sharing = sharing
        self._hint_reader = HintReader(sharing.tenants)
        self._hint_metrics = HintMetrics(has_tenants=bool(sharing.tenants), chunk_bytes=geometry.chunk_bytes)
        self._hinted = dict[str, RequestHints]()
        self._slots_there = geometry.slots if slots_there is None else slots_there
        self._index = self._new_index(KEY_BYTES)
        self._metrics = TierMetrics(geometry, tokens_per_chunk, self._slots_there)
        self._events: list[OffloadingEvent] | None = [] if with_events else None
        self._tokens_per_chunk = tokens_per_chunk
        self.behind: Tiering | None = None
        self._withheld = WithheldSlots()
        self._facts = facts

    @property
    def chunk_tokens(self) -> int:
        """Tokens of a chunk; where each KV cache group has a chunk of its own, its part of them."""
        return max(self._tokens_per_chunk.values()) // len(self._tokens_per_chunk)

    def expect_keys(self, key_bytes: int) -> None:
        """Have chunks' keys be of this length from now on, before any is stored."""
        if key_bytes != self._index.key_bytes:
            self._index = self._new_index(key_bytes)

    def put_behind(
        self,
        tiers: Sequence[TierBehind],
        *,
        most_tokens: int,
        part_ends: tuple[int, ...] = (),
    ) -> None:
        """Have tiers behind memory from now on, which begins empty."""
        self._index = self._new_index(self._index.key_bytes)
        self.behind = Tiering(
            self._index,
            tiers,
            self,
            self.chunk_tokens,
            part_ends=part_ends,
            most_tokens=most_tokens,
            hint_of=self._hint_of,
        )

    def take_hints(
        self, req_context: ReqContext, params: Mapping[str, object] | None, cache_salt: str | None
    ) -> None:
        """Read what a new request says of its chunks."""
        hints = self._hint_reader.read(params, cache_salt)
        if hints.never_store:
            req_context.set_state(NeverWriteBehind())
        if hints != NO_HINTS:
            known = self._hinted[req_context.req_id] = RequestHints(hints)
            req_context.set_state(known)

    def count_asked(self, tokens: int, preemptions: int, req_context: ReqContext) -> None:
        """Count what a request lacks: once, and again after each preemption, as it loads again then."""
        if not self._sharing.tenants:
            return
        before = req_context.get_state(_Asked)
        if before is None or before.preemptions < preemptions:
            req_context.set_state(_Asked(preemptions))
            self._hint_metrics.count_asked(_tenant_of(req_context.get_state(RequestHints)), tokens)

    def _hint_of(self, request_id: str) -> BlockHint | None:
        hints = self._hinted.get(request_id)
        return None if hints is None else hints.block_hint(time.monotonic())

    def grow(self, grown: Grown) -> None:
        """Use what has come of the slots since the last call."""
        if grown.slots > self._slots_there:
            self._index.give_back(range(grown.slots - 1, self._slots_there - 1, -1))
            self._slots_there = grown.slots
        self._metrics.grow(grown)

    @override
    def lookup(self, key: OffloadKey, req_context: ReqContext) -> LookupResult:
        """Tell whether a chunk can be loaded; one behind memory is pending while it comes there."""
        tiers = req_context.load_tier_filter
        if tiers is not TierFilter.ALL and not tiers.allows(Medium.CPU, Locality.LOCAL):
            return LookupResult.MISS
        if self.behind is None or not (
            tiers is TierFilter.ALL or tiers.allows(Medium.STORAGE, Locality.LOCAL)
        ):
            return _RESULTS[self._index.state(key)]
        return _RESULTS[self.behind.lookup(key, req_context)]

    @override
    def get_load_source(self, key: OffloadKey, req_context: ReqContext) -> CacheHitSource:
        """Name the tier that a chunk came from in vLLM's own hit statistics."""
        if self.behind is None:
            return CacheHitSource.HOST
        tier = self.behind.promotions.tier_of(key, req_context.req_id)
        return _SOURCES.get(tier or Tier.CPU, CacheHitSource.EXTERNAL_UNSPECIFIED)

    @override
    def on_new_request(self, req_context: ReqContext) -> RequestOffloadingContext:
        """Have only new chunks offered, not those that a request found cached."""
        return RequestOffloadingContext()

    @override
    def prepare_load(self, keys: Collection[OffloadKey], req_context: ReqContext) -> SlotSpec:
        """Protect chunks until `complete_load` and say where they are."""
        ordered = list(keys)
        coming = self.behind.promotions.lend(ordered, req_context.req_id) if self.behind is not None else {}
        slots = self._index.pin([key for key in ordered if key not in coming], hint_in(req_context))
        self._metrics.count_hits(len(ordered))
        self._count_tenants_hits(ordered, req_context)
        self._note(ordered, req_context)
        if self.behind is not None:
            self.behind.prepare_load(ordered, req_context)
        if not coming:
            return SlotSpec(slots)
        ready = iter(slots.tolist())
        places = [coming.get(key) or PendingRead(next(ready), 0, Tier.CPU) for key in ordered]
        return SlotSpec(
            np.array([place.slot for place in places], np.int32),
            np.array([place.ticket for place in places], np.int64),
        )

    @override
    def complete_load(self, keys: Collection[OffloadKey], req_context: ReqContext) -> None:
        """Let chunks be evicted again, as the most recently used."""
        lent = self.behind.promotions.complete_load(req_context.req_id) if self.behind is not None else set()
        self._index.unpin([key for key in keys if key not in lent])

    @override
    def touch(self, keys: Collection[OffloadKey], req_context: ReqContext) -> None:
        """Make chunks the most recently used, in both tiers."""
        ordered = list(keys)
        self._note(ordered, req_context)
        self._index.touch(ordered, hint_in(req_context))
        if self.behind is not None:
            self.behind.touch(ordered, req_context)

    @override
    def prepare_store(self, keys: Collection[OffloadKey], req_context: ReqContext) -> PrepareStoreOutput:
        """Give slots to chunks that the tier lacks.

        A request's own chunks are never evicted for its later ones: of a prompt that the tier cannot hold,
        the beginning stays.
        """
        hints = req_context.get_state(RequestHints)
        is_never_stored = hints is not None and hints.hints.never_store
        if is_never_stored or req_context.get_state(NeverStore) is not None:
            return PrepareStoreOutput([], SlotSpec(np.empty(0, np.int32)), [])
        ordered = list(dict.fromkeys(keys))
        self._note(ordered, req_context)
        reservation = self._index.reserve(
            ordered,
            keep=req_context.get_offload_key_position,
            hint=hint_in(req_context),
        )
        self._hint_metrics.count_stored(_tenant_of(hints), len(reservation.keys))
        self._metrics.count_misses(len(reservation.keys))
        self.on_chunks_removed(reservation.evicted, Tier.CPU)
        return PrepareStoreOutput(
            keys_to_store=reservation.keys,
            store_spec=SlotSpec(reservation.slots),
            evicted_keys=reservation.evicted,
        )

    @override
    def complete_store(
        self, keys: Collection[OffloadKey], req_context: ReqContext, success: bool = True
    ) -> None:
        """Make stored chunks loadable, or drop those whose store failed."""
        if not success:
            self.invalidate(keys)
        ready = self._index.commit(list(keys))
        self.on_chunks_stored(ready, Tier.CPU)
        if self.behind is not None:
            self.behind.complete_store(ready, req_context)

    def invalidate(self, keys: Collection[OffloadKey]) -> None:
        """Make chunks a miss from now on, because a transfer of them failed."""
        lost = self._index.invalidate(list(keys))
        self._metrics.count_failures(lost)
        self._publish(lost, Tier.CPU, removed=True)

    @property
    def memory(self) -> BlockIndex:
        """What is in memory."""
        return self._index

    @property
    def slots_there(self) -> int:
        """Number of slots that memory has so far; it grows while the engine serves."""
        return self._slots_there

    def forget(self, keys: Sequence[bytes]) -> None:
        """Have chunks not be found in memory any more, also those that a transfer under way brings there."""
        self._publish(self._index.invalidate(keys), Tier.CPU, removed=True)

    def on_chunks_stored(self, keys: Sequence[bytes], tier: Tier) -> None:
        """Take note of chunks that can be loaded now."""
        if tier is Tier.CPU:
            self._metrics.count_stores(keys)
        self._publish(keys, tier, removed=False)

    def on_chunks_removed(self, keys: Sequence[bytes], tier: Tier) -> None:
        """Take note of chunks that made room."""
        if tier is Tier.CPU:
            self._metrics.count_evictions(keys)
        self._publish(keys, tier, removed=True)

    @override
    def on_request_finished(self, req_context: ReqContext) -> None:
        """Forget a request. What its hints say counts from now on."""
        hints = self._hinted.pop(req_context.req_id, None)
        if hints is not None and hints.keys and hints.retain_s:
            ordered = sorted(hints.keys, key=lambda key: self._end_tokens(key, req_context))
            hint = hints.block_hint(time.monotonic())
            for index in self._indexes().values():
                index.touch(ordered, hint)
            hints.keys.clear()
        if self.behind is not None:
            self.behind.promotions.on_request_finished(req_context.req_id)

    @override
    def take_events(self) -> Iterable[OffloadingEvent]:
        """Return what was stored and removed since the last call."""
        if self._events:
            yield from self._events
            self._events.clear()

    @override
    def reset_cache(self) -> None:
        """Forget everything; what a transfer still uses keeps its memory until it has ended.

        A device's copy may be late, and the disk would not wait for it to fill the same slot.
        """
        by_workers = self._index.in_use()
        by_disk = self.behind.reset() if self.behind is not None else ()
        self._index.clear()
        self._withhold_absent(self._index)
        self._index.withhold(self._withheld.reset(by_workers=by_workers.tolist(), by_disk=by_disk))
        self._metrics.clear()

    def on_reset_flushed(self) -> None:
        """Use the memory again of copies that a reset forgot: the workers have reported all of them."""
        self._index.give_back(self._withheld.take_freed_by_workers())

    def on_slots_released(self, slots: Sequence[int]) -> None:
        """Use the memory again of transfers to and from disk that a reset forgot."""
        self._index.give_back(self._withheld.take_freed_by_disk(slots))

    @override
    def get_stats(self) -> OffloadingConnectorStats | None:
        """Return what changed since the last call, or None."""
        stats = self._metrics.take()
        if self.behind is not None:
            stats = self.behind.add_stats(stats)
        if refused := self._hint_reader.take_refused():
            self._hint_metrics.count_refused(refused)
        return self._hint_metrics.add_to(stats, self._indexes())

    def config_info(self) -> Sequence[dict[str, str | int]]:
        """Return what stays as it is, for one series of labels; a newer vLLM asks once."""
        return [self._facts.labels() if self._facts is not None else {}]

    @override
    def shutdown(self) -> None:
        """Let go of the tiers behind."""
        if self.behind is not None:
            self.behind.close()

    def _new_index(self, key_bytes: int) -> BlockIndex:
        index = BlockIndex(self.geometry.slots, key_bytes, sharing=self._sharing)
        self._withhold_absent(index)
        return index

    def _withhold_absent(self, index: BlockIndex) -> None:
        index.withhold(np.arange(self._slots_there, self.geometry.slots, dtype=np.int32))

    def _indexes(self) -> dict[Tier, BlockIndex]:
        behind = {} if self.behind is None else self.behind.indexes
        return {Tier.CPU: self._index, **behind}

    @staticmethod
    def _note(keys: Sequence[bytes], req_context: ReqContext) -> None:
        """Take note of a request's chunks, for when it ends."""
        hints = req_context.get_state(RequestHints)
        if hints is not None:
            hints.keys.update(dict.fromkeys(keys))

    @staticmethod
    def _end_tokens(key: bytes, req_context: ReqContext) -> int:
        return req_context.get_offload_key_position(key) or 0

    def _count_tenants_hits(self, keys: Sequence[bytes], req_context: ReqContext) -> None:
        """Count what a request loads, which ends where the last of its chunks does."""
        if not self._sharing.tenants or not keys:
            return
        tokens = len(keys) * self.chunk_tokens
        end_tokens = max(self._end_tokens(key, req_context) for key in keys)
        pace = self.behind.prefill.pace if self.behind is not None else None
        span = TokenSpan.of(max(0, end_tokens - tokens), end_tokens)
        tenant = _tenant_of(req_context.get_state(RequestHints))
        self._hint_metrics.count_hits(tenant, tokens, 0.0 if pace is None else pace.seconds(span))

    def _publish(self, keys: Sequence[bytes], tier: Tier, *, removed: bool) -> None:
        medium = _MEDIA.get(tier)
        if self._events is not None and keys and medium is not None:
            self._events.append(OffloadingEvent(list(keys), medium, removed, removal_expected=True))


def _tenant_of(hints: RequestHints | None) -> str:
    return "" if hints is None else hints.hints.tenant
