"""Brings what requests ask for from disk into memory, and keeps it there until they load it.

A request waits while its blocks are read: a block that cannot be read is simply not found when the request is
looked up again. Only one that is alone may go ahead and load what is still being read. It holds all of its
blocks in memory, or none: two requests that each held half of the memory and waited for the rest would wait
for ever.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from kvtier_connector.core.behind.break_even import ReadingPays, TokenSpan
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.disk.tier import DiskTier
from kvtier_connector.core.index.index import BlockIndex, BlockState, Reservation
from kvtier_connector.vllm.upstream.compat import log


class ReadDecision:
    """Asks the break-even for one engine's chunks."""

    def __init__(self, disk: DiskTier, chunk_tokens: int, most_tokens: int) -> None:
        self._disk = disk
        self._chunk_tokens = chunk_tokens
        self._most_tokens = most_tokens
        self._bytes_per_token = disk.block_bytes / chunk_tokens
        self._is_read = False
        self._is_warned = False

    @property
    def can_pay(self) -> bool:
        """Whether reading can pay: not of the longest prompt, of none."""
        return self._reading_pays(0, self._most_tokens) is not ReadingPays.DOES_NOT

    def may_pay(self, end_tokens: int) -> bool:
        """Tell of a chunk whether it can pay to read it and all behind it, of the longest prompt."""
        first = max(0, end_tokens - self._chunk_tokens)
        return self._reading_pays(first, max(end_tokens, self._most_tokens)) is ReadingPays.PAYS

    def decide(self, end_tokens: Sequence[int]) -> bool:
        """Decide whether chunks are read, behind what is being read already: whether that is sooner."""
        first, last = max(0, min(end_tokens) - self._chunk_tokens), max(end_tokens)
        size_bytes = (len(end_tokens) + self._disk.loading) * self._disk.block_bytes
        pays = self._disk.break_even.reading_pays(TokenSpan.of(first, last), size_bytes) is ReadingPays.PAYS
        self._is_read = self._is_read or pays
        return pays

    def learn(self) -> None:
        """Have the disk looked at from time to time, and say once if it never pays."""
        self._disk.learn(time.monotonic(), is_in_use=self._is_read)
        self._is_read = False
        if self.can_pay == self._is_warned:
            self._is_warned = not self._is_warned
            whole = TokenSpan.of(0, self._most_tokens)
            figures = self._disk.break_even.describe(whole, self._most_tokens * self._bytes_per_token)
            if self._is_warned:
                log.warning(
                    "kvtier: the disk tier does not pay, so it is neither read nor written: %s; a faster "
                    "disk, or none, serves better",
                    figures,
                )
            else:
                log.info("kvtier: the disk tier pays again: %s", figures)

    def _reading_pays(self, first: int, last: int) -> ReadingPays:
        size_bytes = (last - first) * self._bytes_per_token
        return self._disk.break_even.reading_pays(TokenSpan.of(first, last), size_bytes)


@dataclass(slots=True)
class _Lookups:
    """Blocks that were looked up for one request in this step."""

    ready: dict[bytes, None] = field(default_factory=dict)
    wanted: dict[bytes, int] = field(default_factory=dict)  # and where it ends in the prompt, in tokens


@dataclass(frozen=True, slots=True)
class PendingRead:
    """A block that is being read into memory."""

    slot: int  # slot in memory that it is read into
    ticket: int  # under which the worker is told of it; 0 if it is not


@dataclass(slots=True)
class _Held:
    """What is kept in memory for a request, or on its way there."""

    pinned: dict[bytes, None] = field(default_factory=dict)  # blocks that are protected from eviction
    loading: dict[bytes, PendingRead] = field(default_factory=dict)  # blocks that are being read for it
    promoted: set[bytes] = field(default_factory=set)  # blocks that came from disk
    # blocks for which there was no slot, or that are computed sooner than read
    refused: set[bytes] = field(default_factory=set)


class Promotions:
    """What waiting requests have asked of the disk."""

    def __init__(self, memory: BlockIndex, disk: DiskTier, decision: ReadDecision) -> None:
        self._memory = memory
        self._disk = disk
        self._decision = decision
        self._lookups = dict[str, _Lookups]()
        self._held = dict[str, _Held]()
        self._readers = dict[bytes, str]()
        self._lent = dict[str, list[bytes]]()
        self.ahead = ""
        """Request that finds what is being read for it in parts, as if it were in memory."""

    def lookup(self, key: bytes, request_id: str, end_tokens: int = 0) -> BlockState:
        """Return the state of a block; one that `begin` will read is pending."""
        state = self._memory.state(key)
        if state is BlockState.READY:
            self._lookups_of(request_id).ready[key] = None
        elif state is BlockState.PENDING and request_id == self.ahead:
            return BlockState.READY if self._is_coming(key, request_id) else state
        elif state is BlockState.ABSENT and self._is_wanted(key, request_id, end_tokens):
            self._lookups_of(request_id).wanted[key] = end_tokens
            return BlockState.PENDING
        return state

    def _is_wanted(self, key: bytes, request_id: str, end_tokens: int) -> bool:
        if not self._disk.holds(key) or key in self._hold(request_id).refused:
            return False
        return self._decision.may_pay(end_tokens)

    def begin(self, part_ends: tuple[int, ...] = ()) -> list[Reservation]:
        """Begin to read what was asked for since the last call; returns the memory that was given to it."""
        if not self._lookups:
            return []
        lookups, self._lookups = self._lookups, {}
        made = list[Reservation]()
        for request_id, asked in lookups.items():
            # Since it was looked up, it may have left, come, or been asked for by a request before this one.
            ready = [key for key in asked.ready if self._memory.state(key) is BlockState.READY]
            wanted = [key for key in asked.wanted if self._memory.state(key) is BlockState.ABSENT]
            wanted = [key for key in wanted if self._disk.holds(key)]
            if not wanted:
                continue
            if not self._decision.decide([asked.wanted[key] for key in wanted]):
                self._hold(request_id).refused.update(wanted)
                continue
            if not self._may_begin(request_id, ready, wanted):
                break  # first come, first served: those behind it could keep it waiting for ever
            made.append(self._begin(request_id, ready, wanted, part_ends))
        return made

    def apply(self, progress: Progress) -> list[bytes]:
        """Take note of blocks that were read, and of those that could not be; returns those in memory now."""
        self._memory.invalidate(progress.lost)
        ready = self._memory.commit(progress.loaded + progress.ended)
        for key in progress.lost:
            self._forget_reader(key)
        pinned = dict[str, list[bytes]]()
        for key in ready:
            request_id = self._forget_reader(key)
            if request_id is not None:
                pinned.setdefault(request_id, []).append(key)
        for request_id, keys in pinned.items():
            self._pin(self._held[request_id], keys)
            self._held[request_id].promoted.update(keys)
        return ready

    @property
    def is_complete(self) -> bool:
        """Whether no request waits, or one of them has all that it waits for."""
        waiting = [held for held in self._held.values() if held.loading or held.pinned]
        return not waiting or any(not held.loading for held in waiting)

    def was_promoted(self, key: bytes, request_id: str) -> bool:
        """Tell whether a block was read for this request."""
        held = self._held.get(request_id)
        return held is not None and (key in held.promoted or key in held.loading)

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
            if self._forget_reader(key):
                self._held[request_id].promoted.add(key)
        arrived = [key for key in lent if self._memory.state(key) is BlockState.READY]
        self._memory.pin(arrived)
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
            for blocks in (held.pinned, held.loading, held.promoted):
                blocks.clear()
        self._lookups.clear()
        self._lent.clear()
        self._readers.clear()

    def _may_begin(self, request_id: str, ready: Sequence[bytes], wanted: Sequence[bytes]) -> bool:
        """Tell whether there are slots; who has to wait is looked up again, and holds nothing meanwhile."""
        pinned = self._hold(request_id).pinned
        needed = sum(key not in pinned for key in ready) + len(wanted)
        if needed <= self._memory.reservable:
            return True
        return not any(
            held.pinned or held.loading for other, held in self._held.items() if other != request_id
        )

    def _begin(
        self, request_id: str, ready: Sequence[bytes], wanted: Sequence[bytes], part_ends: tuple[int, ...]
    ) -> Reservation:
        held = self._hold(request_id)
        self._pin(held, [key for key in ready if key not in held.pinned])
        reservation = self._memory.reserve(wanted)
        held.refused.update(set(wanted).difference(reservation.keys))
        self._readers.update(dict.fromkeys(reservation.keys, request_id))
        ticket = self._disk.load(reservation.keys, reservation.slots, part_ends)
        slots = reservation.slots.tolist()
        held.loading.update(
            (key, PendingRead(slot, ticket)) for key, slot in zip(reservation.keys, slots, strict=True)
        )
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
