"""The disk tier as the scheduler sees it: what it holds, and orders to load and store that never wait."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import numpy as np

from kvtier_common.tier import Tier
from kvtier_connector.core.behind.break_even import WriteBudget
from kvtier_connector.core.behind.messages import (
    Clear,
    Cleared,
    Down,
    Ended,
    MemoryOf,
    Order,
    Overdue,
    Probed,
)
from kvtier_connector.core.behind.progress import Progress, RateLearner
from kvtier_connector.core.behind.tier import Presence, TierOwner
from kvtier_connector.core.copies.arrivals import TICKETS
from kvtier_connector.core.disk.files.store import GENERATIONS, Store
from kvtier_connector.core.disk.timings import DEFAULT_TIMINGS, Timings
from kvtier_connector.core.disk.transfers import messages
from kvtier_connector.core.disk.transfers.loop import DiskThread
from kvtier_connector.core.index.hints import BlockHint
from kvtier_connector.core.index.index import BlockIndex, BlockState
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.errors import DiskError

_SENT_AT_ONCE: Final = 128
"""Orders: the disk begins with these, a third of a millisecond's work, while more are made."""


@dataclass(slots=True)
class _IndexUpdates:
    """Orders for what the index holds, which have ended."""

    read: list[int] = field(default_factory=list)
    written: list[bytes] = field(default_factory=list)
    bad: list[Order] = field(default_factory=list)

    def add(self, order: Order, error: Exception | None, *, is_forgotten: bool) -> None:
        """Add an order, why it failed, and whether its block was forgotten while it was being written."""
        if order.write:
            self.written.append(order.key)
        else:
            self.read.append(order.slot)
        # A load that the disk was not asked for, or that was taken back, says nothing against the block.
        if is_forgotten or (error is not None and (order.write or not isinstance(error, DiskError))):
            self.bad.append(order)

    def apply(self, index: BlockIndex) -> Slots:
        """Tell the index; returns the slots that hold nothing any more."""
        if self.bad:
            index.invalidate(list({order.key: None for order in self.bad}))
        index.commit(self.written)
        index.unpin_slots(np.array(self.read, np.int32))
        return np.array([order.slot for order in self.bad], np.int32)


class DiskTier(TierOwner):
    """Blocks on disk, behind those in memory. One thread owns it."""

    tier = Tier.DISK
    reads_in_parts = True
    writes_when_stored = True
    is_asked = False
    asking = 0

    def __init__(  # noqa: PLR0913 - its parts
        self,
        disk: DiskThread,
        store: Store,
        *,
        block_bytes: int,
        memory_of: MemoryOf,
        most_writes: int,
        budget: WriteBudget,
        always: bool = False,
        timings: Timings = DEFAULT_TIMINGS,
    ) -> None:
        super().__init__(block_bytes=block_bytes, most_writes=most_writes, budget=budget)
        self._disk = disk
        self._store: Store | None = store
        self._generation = store.generation
        self.slots = store.shape.slots
        self._memory_of = memory_of
        self._timings = timings
        self._learning = RateLearner(
            store.rates, always=always, block_bytes=block_bytes, every_s=timings.relearn_s
        )
        self.break_even = self._learning.break_even
        self._uncleared = 0
        self._forgotten = set[int]()  # slots of blocks that were forgotten while they are being written
        self._is_stuck = False

    @property
    def index(self) -> BlockIndex | None:
        """What it holds, unless the disk is down."""
        return self._store.index if self._store is not None else None

    @property
    def used(self) -> int:
        """Number of blocks that are held or being written."""
        return self._store.index.used if self._store else 0

    @property
    def is_down(self) -> bool:
        """Whether the disk cannot be used at present."""
        return self._store is None or self._is_stuck

    def holds(self, key: bytes) -> bool:
        """Tell whether a block can be loaded."""
        if self._store is None or self._is_stuck:
            return False
        return self._store.index.state(key) is BlockState.READY

    def presence(self, key: bytes) -> Presence:
        """Tell whether a block can be loaded: the index knows."""
        return Presence.PRESENT if self.holds(key) else Presence.ABSENT

    def ask(self, keys: Sequence[bytes]) -> None:
        """Do nothing: all is known."""

    def load(self, keys: Sequence[bytes], memory_slots: Slots, part_ends: tuple[int, ...] = ()) -> int:
        """Begin to read blocks that it holds; `poll` reports each.

        With `part_ends`, in bytes, they are read in parts, and the ticket is returned under which workers are
        told of those; 0 without. Raises KeyError: it does not hold one of them.
        """
        if self._store is None:
            raise KeyError("the disk tier holds nothing")
        if not self._pending.loads:
            self._learning.reading_begins(time.monotonic())
        ticket = next(TICKETS) if part_ends else 0
        parts = (part_ends, ticket)
        self._send(keys, self._store.index.pin(keys), memory_slots, write=False, parts=parts)
        return ticket

    def yield_to_thread(self) -> None:
        """Leave the interpreter to the disk's thread until it has handed its orders over, or for a moment.

        A step that goes ahead would keep it from beginning for some milliseconds, as long as Python lets one
        thread run.
        """
        until = time.monotonic() + self._timings.begin_s
        while not self._disk.has_begun() and time.monotonic() < until:
            time.sleep(self._timings.nap_s)

    def lacking(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return those of the keys that it neither holds nor is writing; none while the disk is down."""
        if self._store is None or self._is_stuck:
            return []
        return self._store.index.lacking(keys)

    def store(
        self, keys: Sequence[bytes], memory_slots: Slots, progress: Progress, hint: BlockHint | None = None
    ) -> None:
        """Begin to write blocks from `admit`; `poll` releases each, when its memory may change again.

        `progress` is told what gives way, and releases at once what finds no place.
        """
        if self._store is None:
            progress.released += keys
            return
        reservation = self._store.index.reserve(keys, hint=hint)
        self._counts.evicted += len(reservation.evicted)
        self._counts.dropped += len(keys) - len(reservation.keys)
        progress.evicted += reservation.evicted
        slot_of = dict(zip(keys, memory_slots.tolist(), strict=True))
        memory = np.array([slot_of.pop(key) for key in reservation.keys], np.int32)
        progress.released += slot_of
        self._send(reservation.keys, reservation.slots, memory, write=True)

    def touch(self, keys: Sequence[bytes], hint: BlockHint | None = None) -> None:
        """Make blocks the most recently used; those that it lacks are passed over."""
        if self._store is not None:
            self._store.index.touch(keys, hint)

    def newest(self, most: int) -> list[bytes]:
        """Return up to `most` blocks that were used last, the last first; after a start, stored last."""
        return self._store.index.newest(most) if self._store is not None else []

    def keep_newest(self, keys: Sequence[bytes]) -> None:
        """Do nothing: the index on disk knows."""

    def clear(self) -> None:
        """Forget everything, for the next start too: the model's weights may have changed."""
        self._generation = next(GENERATIONS)
        self._uncleared += 1
        if self._store is not None:
            self._store.index.clear()
        self._forgotten.clear()
        self._disk.send([Clear(self._generation)])

    def begin_anew(self, epoch: str, progress: Progress) -> None:
        """Forget everything: nobody shares it. Unlike after `clear`, the next start finds what comes now."""
        del epoch
        self.forget(self._store.index.keys() if self._store is not None else [], progress)

    def forget(self, keys: Sequence[bytes], progress: Progress) -> None:
        """Have blocks not be found again; where it cannot be told which are here, none is."""
        if self._store is None:
            self.clear()
            return
        index = self._store.index
        places = index.places(keys)
        if not places:
            return
        self._forgotten |= {slot for key, slot in places.items() if index.state(key) is BlockState.PENDING}
        under_way = [order for order in (*self._pending.loads, *self._pending.stores) if order.key in places]
        self._pending.lose(under_way, progress)
        progress.evicted += index.invalidate(list(places))
        slots = np.array(list(places.values()), np.int32)
        self._disk.send([messages.Forget(self._generation, slots, is_promised=True)])

    @property
    def is_forgetting(self) -> bool:
        """Whether the disk's thread has not put down yet what was forgotten."""
        return bool(self._uncleared or self._forgotten) or not self._disk.has_taken_all()

    def take_forget_error(self) -> str:
        """Return nothing: a disk that is off forgets everything before it is used again."""
        return ""

    def learn(self, now_s: float, *, is_in_use: bool) -> None:
        """Keep what was learnt, and have the disk looked at where no reads show how fast it is."""
        due = self._learning.take_due(now_s, is_in_use=is_in_use)
        if due:
            self._disk.send(due)

    def forget_memory(self) -> Slots:
        """Forget for whom the orders under way are; returns the memory slots that they still use."""
        return self._pending.forget()

    def wait(self, timeout_s: float) -> None:
        """Return when `poll` has something to say, or after the timeout."""
        self._disk.wait(timeout_s)

    def poll(self) -> Progress | None:
        """Take note of what has happened since the last call; returns that, or None."""
        events = self._disk.take_events()
        was_stuck, self._is_stuck = self._is_stuck, self._disk.is_stuck()
        if not events and was_stuck == self._is_stuck:
            return None
        self._learning.measure(events)
        progress = Progress()
        self._update_index(self._follow(events, progress))
        if self._is_stuck and not was_stuck:
            self._pending.lose(list(self._pending.loads), progress)
            progress.notes.append(
                "the disk tier is off: the operating system does not answer; serving from memory"
            )
        return progress

    def close(self) -> None:
        """End what serves the orders."""
        self._disk.close(self._timings.closing_s)

    def _send(
        self,
        keys: Sequence[bytes],
        slots: Slots,
        memory_slots: Slots,
        *,
        write: bool,
        parts: tuple[tuple[int, ...], int] = ((), 0),
    ) -> None:
        """Order blocks, neighbours on disk one after the other."""
        places = np.argsort(slots)
        rows = zip(places.tolist(), slots[places].tolist(), memory_slots[places].tolist(), strict=True)
        orders = (
            Order(
                write, self._generation, keys[place], slot, memory_slot, self._memory_of(memory_slot), *parts
            )
            for place, slot, memory_slot in rows
        )
        pending = self._pending.stores if write else self._pending.loads
        while some := list(islice(orders, _SENT_AT_ONCE)):
            pending.update(dict.fromkeys(some, False))
            self._disk.send(some)

    def _follow(self, events: Sequence[messages.Event], progress: Progress) -> _IndexUpdates:
        """Take note of events in their order; returns what the index is to be told."""
        updates = _IndexUpdates()
        for event in events:
            match event:
                case Ended():
                    self._counts.add(event, self.block_bytes)
                    is_current = self._store is not None and event.order.generation == self._generation
                    self._pending.end(event, progress, self._generation, is_current=is_current)
                    if is_current:
                        is_forgotten = event.order.write and event.order.slot in self._forgotten
                        self._forgotten.discard(event.order.slot if is_forgotten else -1)
                        updates.add(event.order, event.error, is_forgotten=is_forgotten)
                case Overdue(order):
                    self._pending.lose([order], progress)
                case Down(reason):
                    self._update_index(updates)
                    updates = _IndexUpdates()
                    self._let_go(reason, progress)
                case messages.Up(store):
                    self._take(store, progress)
                case messages.NotForgotten():
                    self._update_index(updates)
                    updates = _IndexUpdates()
                    self.clear()
                case Cleared():
                    self._uncleared -= 1
                case Probed(size_bytes, seconds):
                    self.break_even.read.add(size_bytes, seconds)
        return updates

    def _let_go(self, reason: str, progress: Progress) -> None:
        self._store = None
        if self._forgotten:
            self.clear()  # what was being written may have been put down
        progress.notes.append(f"the disk tier is off: {reason}; serving from memory")

    def _update_index(self, updates: _IndexUpdates) -> None:
        if self._store is not None:
            emptied = updates.apply(self._store.index)
            if len(emptied):
                self._disk.send([messages.Forget(self._generation, emptied)])

    def _take(self, store: Store, progress: Progress) -> None:
        self._store = store
        self.slots = store.shape.slots
        if self._uncleared:
            self.clear()  # again: what was ordered since then has slots of an index that is no more
        else:
            self._generation = store.generation
        progress.notes.append(f"the disk tier is back, with {store.index.used} chunks")
