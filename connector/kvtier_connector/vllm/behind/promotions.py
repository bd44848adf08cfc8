"""Brings what requests ask for from the tiers behind into memory, and keeps it there until they load it.

A request waits while its blocks are read: a block that cannot be read is simply not found when the request is
looked up again, once the others have come or are lost, too. Before that, what it computes in their place
would not be kept: memory believes that they come. Only one that is alone may go ahead and load what is still
being read. It holds all of its blocks in memory, or none: two requests that each held half of the memory and
waited for the rest would wait for ever.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kvtier_common.tier import Tier
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.behind.tier import Presence, TierBehind
from kvtier_connector.core.index.hints import BlockHint
from kvtier_connector.core.index.index import BlockIndex, BlockState, Reservation
from kvtier_connector.vllm.behind.read_decision import ReadDecision


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A tier that blocks are read from, and whether that pays."""

    tier: TierBehind
    decision: ReadDecision


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A block that a request waits for."""

    end_tokens: int  # where it ends in the prompt, in tokens
    source: Source  # where it is read from
    anyway: bool = False  # whether it is read though it may be computed sooner: nobody waits for it yet


@dataclass(slots=True)
class _Lookups:
    """Blocks that were looked up for one request in this step."""

    ready: dict[bytes, None] = field(default_factory=dict)
    wanted: dict[bytes, _Wanted] = field(default_factory=dict)
    unknown: dict[bytes, Source] = field(default_factory=dict)  # blocks of which a tier has to be asked


@dataclass(frozen=True, slots=True)
class PendingRead:
    """A block that is being read into memory."""

    slot: int  # slot in memory that it is read into
    ticket: int  # under which the worker is told of it; 0 if it is not
    tier: Tier  # that it is read from


@dataclass(slots=True)
class _Held:
    """What is kept in memory for a request, or on its way there."""

    pinned: dict[bytes, None] = field(default_factory=dict)  # blocks that are protected from eviction
    loading: dict[bytes, PendingRead] = field(default_factory=dict)  # blocks that are being read for it
    promoted: dict[bytes, Tier] = field(default_factory=dict)  # blocks that were read for it, and from where
    asked: set[bytes] = field(default_factory=set)  # blocks of which a tier was asked for it
    lost: set[bytes] = field(default_factory=set)  # blocks that were to be read for it, and could not be
    # blocks for which there was no slot, or that are computed sooner than read
    refused: set[bytes] = field(default_factory=set)


class Promotions:
    """What waiting requests have asked of the tiers behind memory."""

    def __init__(
        self,
        memory: BlockIndex,
        sources: Sequence[Source],
        hint_of: Callable[[str], BlockHint | None] = lambda _request_id: None,
    ) -> None:
        self._memory = memory
        self._hint_of = hint_of
        self._fastest_first = _fastest_first(sources)
        self._lookups = dict[str, _Lookups]()
        self._held = dict[str, _Held]()
        self._readers = dict[bytes, str]()
        self._lent = dict[str, list[bytes]]()
        self.ahead = ""
        """Request that finds what is being read for it in parts, as if it were in memory."""

    def lookup(self, key: bytes, request_id: str, end_tokens: int = 0, *, anyway: bool = False) -> BlockState:
        """Return the state of a block; one that `begin` will read, or ask for, is pending.

        Where nobody waits for it, it is read `anyway`, if computing it would be sooner, too.
        """
        state = self._memory.state(key)
        if state is BlockState.READY:
            self._lookups_of(request_id).ready[key] = None
        elif state is BlockState.PENDING and request_id == self.ahead:
            return BlockState.READY if self._is_coming(key, request_id) else state
        elif state is not BlockState.PENDING and (
            (state is BlockState.ABSENT and self._want(key, request_id, end_tokens, anyway=anyway))
            or self._waits_for_others(key, request_id)
        ):
            return BlockState.PENDING
        return state

    def _waits_for_others(self, key: bytes, request_id: str) -> bool:
        """Tell whether a block was lost for a request of whose blocks others are still being read."""
        held = self._held.get(request_id)
        return held is not None and bool(held.loading) and key in held.lost and request_id != self.ahead

    def _want(self, key: bytes, request_id: str, end_tokens: int, *, anyway: bool) -> bool:
        """Have a block read from the fastest tier that has it; tells whether there may be one."""
        held = self._held.get(request_id)
        if held is not None and key in held.refused:
            return False
        for source in self._fastest_first:
            presence = source.tier.presence(key)
            if presence is Presence.ABSENT or not (anyway or source.decision.may_pay(end_tokens)):
                continue
            if presence is Presence.ASKED:
                return True
            if presence is Presence.PRESENT:
                self._lookups_of(request_id).wanted[key] = _Wanted(end_tokens, source, anyway)
                return True
            # an answer that did not last until the request was looked up again is not waited for twice
            if held is None or key not in held.asked:
                self._lookups_of(request_id).unknown[key] = source
                return True
        return False

    def begin(self, part_ends: tuple[int, ...] = ()) -> list[Reservation]:
        """Begin to read what was asked for since the last call; returns the memory that was given to it."""
        if not self._lookups:
            return []
        lookups, self._lookups = self._lookups, {}
        for request_id, asked in lookups.items():
            self._ask(request_id, asked.unknown)
        made = list[Reservation]()
        for request_id, asked in lookups.items():
            # Since it was looked up, it may have left, come, or been asked for by a request before this one.
            ready = [key for key in asked.ready if self._memory.state(key) is BlockState.READY]
            wanted = {
                key: block
                for key, block in asked.wanted.items()
                if self._memory.state(key) is BlockState.ABSENT
                and block.source.tier.presence(key) is Presence.PRESENT
            }
            if not wanted or not self._pays(request_id, wanted):
                continue
            if not self._may_begin(request_id, ready, wanted):
                break  # first come, first served: those behind it could keep it waiting for ever
            made.append(self._begin(request_id, ready, wanted, part_ends))
        return made

    def _ask(self, request_id: str, unknown: Mapping[bytes, Source]) -> None:
        if unknown:
            self._hold(request_id).asked.update(unknown)
        for source, keys in _by_source(unknown).items():
            source.tier.ask(keys)

    def _pays(self, request_id: str, wanted: Mapping[bytes, _Wanted]) -> bool:
        """Tell whether what a request wants is read; what is computed sooner is refused."""
        groups = _by_source({key: block.source for key, block in wanted.items() if not block.anyway})
        refused = [
            key
            for source, keys in groups.items()
            if not source.decision.decide([wanted[key].end_tokens for key in keys])
            for key in keys
        ]
        if refused:
            self._hold(request_id).refused.update(refused)
        return not refused  # of several tiers, what the others have is looked up again

    def apply(self, progress: Progress, tier: Tier) -> list[bytes]:
        """Take note of blocks that were read, and of those that could not be; returns those in memory now."""
        self._fastest_first = _fastest_first(self._fastest_first)  # what has happened may have been measured
        self._memory.invalidate(progress.lost)
        read = progress.loaded + progress.ended
        ready = set(self._memory.commit(read))  # not of those that were forgotten meanwhile
        for key in progress.lost:
            request_id = self._forget_reader(key)
            if request_id is not None:
                self._held[request_id].lost.add(key)
        pinned = dict[str, list[bytes]]()
        for key in read:
            request_id = self._forget_reader(key)
            if request_id is not None and key in ready:
                pinned.setdefault(request_id, []).append(key)
        for request_id, keys in pinned.items():
            self._pin(self._held[request_id], keys)
            self._held[request_id].promoted.update(dict.fromkeys(keys, tier))
        return [key for key in read if key in ready]

    @property
    def is_complete(self) -> bool:
        """Whether no request waits, or one of them has all that it waits for."""
        waiting = [held for held in self._held.values() if held.loading or held.pinned]
        if not waiting:
            return not any(source.tier.asking for source in self._fastest_first)
        return any(not held.loading for held in waiting)

    def tier_of(self, key: bytes, request_id: str) -> Tier | None:
        """Return the tier that a block was read from for this request; None if it was not read."""
        held = self._held.get(request_id)
        if held is None:
            return None
        coming = held.loading.get(key)
        return coming.tier if coming is not None else held.promoted.get(key)

    def lend(self, keys: Sequence[bytes], request_id: str) -> dict[bytes, PendingRead]:
        """Return those of a load's blocks that are still being read: in memory until `complete_load`."""
        held = self._held.get(request_id)
        coming = {key: held.loading[key] for key in keys if key in held.loading} if held is not None else {}
        if coming:
            self._lent[request_id] = list(coming)
        return coming

    def complete_load(self, request_id: str) -> set[bytes]:
        """End a load of blocks that were lent, and return those: no load protects them."""
        lent = self._lent.pop(request_id, [])
        if not lent:
            return set()
        for key in lent:  # the disk may not have said yet that it is there
            coming = self._held[request_id].loading.get(key) if request_id in self._held else None
            if coming is not None and self._forget_reader(key):
                self._held[request_id].promoted[key] = coming.tier
        arrived = [key for key in lent if self._memory.state(key) is BlockState.READY]
        self._memory.pin(arrived, self._hint_of(request_id))
        self._memory.unpin(arrived)
        self.unpin(request_id)
        return set(lent)

    def unpin(self, request_id: str) -> None:
        """Let go of a request's blocks: its load protects them, or it needs none."""
        held = self._held.get(request_id)
        if held is not None:
            self._memory.unpin(list(held.pinned))
            held.pinned.clear()

    def on_request_finished(self, request_id: str) -> None:
        """Forget a request. What is being read for it stays in memory like anything else."""
        self.unpin(request_id)
        self._lookups.pop(request_id, None)
        for key in self._held.pop(request_id, _Held()).loading:
            del self._readers[key]

    def forget_memory(self) -> None:
        """Forget what is in memory, because its index was cleared."""
        for held in self._held.values():
            held.pinned.clear()
            held.loading.clear()
            held.promoted.clear()
        self._lookups.clear()
        self._lent.clear()
        self._readers.clear()

    def _may_begin(self, request_id: str, ready: Sequence[bytes], wanted: Mapping[bytes, _Wanted]) -> bool:
        """Tell whether there are slots; who has to wait is looked up again, and holds nothing meanwhile."""
        pinned = self._hold(request_id).pinned
        needed = sum(key not in pinned for key in ready) + len(wanted)
        if needed <= self._memory.reservable:
            return True
        return not any(
            held.pinned or held.loading for other, held in self._held.items() if other != request_id
        )

    def _begin(
        self,
        request_id: str,
        ready: Sequence[bytes],
        wanted: Mapping[bytes, _Wanted],
        part_ends: tuple[int, ...],
    ) -> Reservation:
        held = self._hold(request_id)
        self._pin(held, [key for key in ready if key not in held.pinned])
        hint = self._hint_of(request_id)
        if hint is None or not hint.tenant:  # a prefetch, or a request that may read a tenant's block
            self._memory.expect_strays()
        reservation = self._memory.reserve(list(wanted), hint=hint)
        held.refused.update(set(wanted).difference(reservation.keys))
        self._readers.update(dict.fromkeys(reservation.keys, request_id))
        slots = dict(zip(reservation.keys, reservation.slots.tolist(), strict=True))
        for source, keys in _by_source({key: wanted[key].source for key in reservation.keys}).items():
            places = np.array([slots[key] for key in keys], np.int32)
            ticket = source.tier.load(keys, places, part_ends if source.tier.reads_in_parts else ())
            held.loading.update((key, PendingRead(slots[key], ticket, source.tier.tier)) for key in keys)
        return reservation

    def _is_coming(self, key: bytes, request_id: str) -> bool:
        coming = self._hold(request_id).loading.get(key)
        return coming is not None and coming.ticket > 0

    def _pin(self, held: _Held, keys: Sequence[bytes]) -> None:
        self._memory.hold(keys)
        held.pinned.update(dict.fromkeys(keys))

    def _forget_reader(self, key: bytes) -> str | None:
        request_id = self._readers.pop(key, None)
        if request_id is not None:
            self._held[request_id].loading.pop(key, None)
        return request_id

    def _lookups_of(self, request_id: str) -> _Lookups:
        return self._lookups.setdefault(request_id, _Lookups())

    def _hold(self, request_id: str) -> _Held:
        held = self._held.get(request_id)
        if held is None:
            held = self._held[request_id] = _Held()
        return held


def _fastest_first(sources: Sequence[Source]) -> tuple[Source, ...]:
    """Sort by what was measured; with each lookup it would cost as much as the lookup itself."""
    return tuple(sorted(sources, key=lambda source: -(source.tier.break_even.read.per_second or 0.0)))


def _by_source(blocks: Mapping[bytes, Source]) -> dict[Source, list[bytes]]:
    by_source = dict[Source, list[bytes]]()
    for key, source in blocks.items():
        by_source.setdefault(source, []).append(key)
    return by_source
