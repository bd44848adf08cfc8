"""The disk tier as the scheduler sees it: what it holds, and orders to load and store that never wait."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import numpy as np

from kvtier_connector.core.copies.arrivals import TICKETS
from kvtier_connector.core.disk.files.store import GENERATIONS, Store
from kvtier_connector.core.disk.report import Counts, Progress
from kvtier_connector.core.disk.timings import DEFAULT_TIMINGS, Timings
from kvtier_connector.core.disk.work.orders import (
    Clear,
    Cleared,
    Disk,
    Down,
    Ended,
    Event,
    Forget,
    Keep,
    Order,
    Overdue,
    Probe,
    Probed,
    Up,
)
from kvtier_connector.core.disk.worth.admission import BreakEven, WriteBudget
from kvtier_connector.core.index.index import BlockState
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.errors import CorruptBlockError, DiskError

_SENT_AT_ONCE: Final = 128
"""Orders: the disk begins with these, a third of a millisecond's work, while more are made."""

_BEGIN_S: Final = 0.005
_NAP_S: Final = 0.0002
"""How long the disk's thread is waited for, and how it is given the interpreter meanwhile: a step that goes
ahead would keep it from beginning for some milliseconds, as long as Python lets one thread run."""

Parts = Callable[[int], tuple[memoryview, ...]]
"""From a slot in memory to its bytes, in the order of the file."""


@dataclass(slots=True)
class _Done:
    """Orders of the present store that have ended, for its index: read, written, and failed."""

    read: list[int] = field(default_factory=list)  # by their slots
    written: list[bytes] = field(default_factory=list)  # by their keys
    bad: list[Order] = field(default_factory=list)


class DiskTier:
    """Blocks on disk, behind those in memory. One thread owns it.

    Args:
        disk: serves the orders.
        store: what it has opened.
        block_bytes: size of a block on disk.
        parts: where a memory slot's bytes are.
        most_writes: blocks that may wait to be written; what comes beyond is dropped.
        budget: bound on what is written.
        always: read and write also what is computed sooner.
        timings: how long to wait for what.
    """

    def __init__(  # noqa: PLR0913 - its parts
        self,
        disk: Disk,
        store: Store,
        *,
        block_bytes: int,
        parts: Parts,
        most_writes: int,
        budget: WriteBudget,
        always: bool = False,
        timings: Timings = DEFAULT_TIMINGS,
    ) -> None:
        self._disk = disk
        self._store: Store | None = store
        self._generation = store.generation
        self.slots = store.shape.slots
        self.block_bytes = block_bytes
        self._parts = parts
        self._most_writes = most_writes
        self._budget = budget
        self._timings = timings
        self._kept = store.rates
        self.break_even = BreakEven(self._kept, always=always)
        self._look_at_s = 0.0
        self._loads = dict[Order, bool]()  # whether it is lost already
        self._stores = dict[Order, bool]()
        self._orphans = set[Order]()
        self._uncleared = 0
        self._is_stuck = False
        self._counts = Counts()
        self._reading_since_s = 0.0

    # ---- what there is ----

    @property
    def used(self) -> int:
        """Number of blocks that are held or being written."""
        return self._store.index.used if self._store else 0

    @property
    def loading(self) -> int:
        """Number of blocks that are being read."""
        return len(self._loads)

    @property
    def is_busy(self) -> bool:
        """Whether it reads or writes for somebody."""
        return bool(self._loads or self._stores)

    @property
    def is_down(self) -> bool:
        """Whether the disk cannot be used at present."""
        return self._store is None or self._is_stuck

    def holds(self, key: bytes) -> bool:
        """Tell whether a block can be loaded."""
        if self._store is None or self._is_stuck:
            return False
        return self._store.index.state(key) is BlockState.READY

    # ---- orders ----

    def load(self, keys: Sequence[bytes], memory_slots: Slots, ends: tuple[int, ...] = ()) -> int:
        """Begin to read blocks that it holds; `progress` reports each.

        Args:
            keys: the blocks'.
            memory_slots: where they are to be.
            ends: of the parts in which they are read, in bytes; empty for all at once.

        Returns:
            The ticket under which the workers are told of their parts; 0 without.

        Raises:
            KeyError: it does not hold one of them.
        """
        if self._store is None:
            raise KeyError("the disk tier holds nothing")
        if not self._loads:
            self._reading_since_s = time.monotonic()
        ticket = next(TICKETS) if ends else 0
        slots = self._store.index.pin(keys)
        orders = self._orders(keys, slots, memory_slots, write=False, parts=(ends, ticket))
        self._send(self._loads, orders)
        return ticket

    def let_begin(self) -> None:
        """Leave the interpreter to the disk's thread until it has handed its orders over, or for a moment."""
        until = time.monotonic() + _BEGIN_S
        while not self._disk.has_begun() and time.monotonic() < until:
            time.sleep(_NAP_S)

    def lacking(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return those of the keys that it neither holds nor is writing; none while the disk is down."""
        if self._store is None or self._is_stuck:
            return []
        return self._store.index.lacking(keys)

    def admitted(self, lacking: Sequence[bytes]) -> Sequence[bytes]:
        """Return the first of the keys that it lacks, as many as may be stored now."""
        room = max(0, self._most_writes - len(self._stores))
        granted = self._budget.take(min(len(lacking), room), self.block_bytes, time.monotonic())
        return lacking[:granted]

    def wanted(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        """Return those of new blocks that should be stored now, and count the others that it lacks."""
        lacking = self.lacking(keys)
        admitted = self.admitted(lacking)
        self._counts.dropped += len(lacking) - len(admitted)
        return admitted

    def store(self, keys: Sequence[bytes], memory_slots: Slots, progress: Progress) -> None:
        """Begin to write blocks; `progress` releases each, when its memory may change again.

        Args:
            keys: from `wanted` or `admitted`.
            memory_slots: where they are.
            progress: is told what gives way, and releases at once what finds no room.
        """
        if self._store is None:
            progress.released += keys
            return
        reservation = self._store.index.reserve(keys)
        self._counts.evicted += len(reservation.evicted)
        self._counts.dropped += len(keys) - len(reservation.keys)
        progress.evicted += reservation.evicted
        slot_of = dict(zip(keys, memory_slots.tolist(), strict=True))
        memory = np.array([slot_of.pop(key) for key in reservation.keys], np.int32)
        progress.released += slot_of
        self._send(self._stores, self._orders(reservation.keys, reservation.slots, memory, write=True))

    def touch(self, keys: Sequence[bytes]) -> None:
        """Make blocks the most recently used; those that it lacks are passed over."""
        if self._store is not None:
            self._store.index.touch(keys)

    def clear(self) -> None:
        """Forget everything, for the next start too: the model's weights may have changed."""
        self._generation = next(GENERATIONS)
        self._uncleared += 1
        if self._store is not None:
            self._store.index.clear()
        self._disk.send([Clear(self._generation)])

    def learn(self, now_s: float, *, is_in_use: bool) -> None:
        """Keep what was learnt, and have the disk looked at where no reads show how fast it is.

        Args:
            now_s: a clock's time.
            is_in_use: requests read from it.
        """
        found = self.break_even.rates
        is_due = now_s >= self._look_at_s
        if is_due:
            self._look_at_s = now_s + self._timings.relearn_s
            if not is_in_use:
                self._disk.send([Probe()])
        if found.says_more_than(self._kept) or (is_due and found.differs(self._kept)):
            self._kept = found
            self._disk.send([Keep(found.text())])

    def forget_memory(self) -> Slots:
        """Forget for whom the orders under way are; what they still use in memory is reported in `orphans`.

        Returns:
            The memory slots that they use.
        """
        self._orphans |= self._loads.keys() | self._stores.keys()
        self._loads.clear()
        self._stores.clear()
        return np.array(sorted({order.memory_slot for order in self._orphans}), np.int32)

    # ---- what has happened ----

    def wait(self, timeout_s: float) -> None:
        """Return when `progress` has something to say, or after the timeout."""
        self._disk.wait(timeout_s)

    def progress(self) -> Progress | None:
        """Return what has happened since the last call, or None."""
        events = self._disk.events()
        was_stuck, self._is_stuck = self._is_stuck, self._disk.is_stuck()
        if not events and was_stuck == self._is_stuck:
            return None
        self._measure(events)
        found = Progress()
        self._settle(self._follow(events, found))
        if self._is_stuck and not was_stuck:
            for order in list(self._loads):
                self._lose(order, found)
            found.notes.append(
                "the disk tier is off: the operating system does not answer; serving from memory"
            )
        return found

    def _follow(self, events: Sequence[Event], found: Progress) -> _Done:
        """Take note of events in their order; returns what the index is to be told."""
        done = _Done()
        for event in events:
            match event:
                case Ended():
                    self._end(event, found, done)
                case Overdue(order):
                    self._lose(order, found)
                case Down(reason):
                    done = self._settle(done)
                    self._store = None
                    found.notes.append(f"the disk tier is off: {reason}; serving from memory")
                case Up(store):
                    self._take(store, found)
                case Cleared():
                    self._uncleared -= 1
                case Probed(size_bytes, seconds):
                    self.break_even.read.measured(size_bytes, seconds)
        return done

    def take_counts(self) -> Counts:
        """Return what was counted since the last call."""
        counts, self._counts = self._counts, Counts()
        return counts

    def close(self) -> None:
        """End what serves the orders."""
        self._disk.close(self._timings.closing_s)

    def _orders(
        self,
        keys: Sequence[bytes],
        slots: Slots,
        memory_slots: Slots,
        *,
        write: bool,
        parts: tuple[tuple[int, ...], int] = ((), 0),
    ) -> Iterator[Order]:
        """Yield an order for each block, neighbours on disk one after the other."""
        places = np.argsort(slots)
        rows = zip(places.tolist(), slots[places].tolist(), memory_slots[places].tolist(), strict=True)
        for place, slot, memory_slot in rows:
            yield Order(
                write, self._generation, keys[place], slot, memory_slot, self._parts(memory_slot), *parts
            )

    def _send(self, under_way: dict[Order, bool], orders: Iterator[Order]) -> None:
        while some := list(islice(orders, _SENT_AT_ONCE)):
            under_way.update(dict.fromkeys(some, False))
            self._disk.send(some)

    def _end(self, ended: Ended, progress: Progress, done: _Done) -> None:
        order, error = ended.order, ended.error
        current = self._store is not None and order.generation == self._generation
        self._count(ended)
        if order in self._orphans:
            self._orphans.remove(order)
            if all(other.memory_slot != order.memory_slot for other in self._orphans):
                progress.orphans.append(order.memory_slot)
        elif order.write:
            lost = self._stores.pop(order)
            progress.released.append(order.key)
            if current and error is None and not lost:
                progress.stored.append(order.key)
        else:
            lost = self._loads.pop(order)
            if error is None and not lost and order.generation == self._generation:
                progress.loaded.append(order.key)
            else:
                progress.ended.append(order.key)
                if not lost:
                    progress.lost.append(order.key)
        if current:
            if order.write:
                done.written.append(order.key)
            else:
                done.read.append(order.slot)
            # A load that the disk was not asked for, or that was taken back, says nothing against the block.
            if error is not None and (order.write or not isinstance(error, DiskError)):
                done.bad.append(order)

    def _settle(self, done: _Done) -> _Done:
        """Tell the index of orders that have ended, many at a time."""
        if self._store is not None:
            index = self._store.index
            if done.bad:
                index.invalidate(list({order.key: None for order in done.bad}))
                slots = np.array([order.slot for order in done.bad], np.int32)
                self._disk.send([Forget(self._generation, slots)])
            index.commit(done.written)
            index.unpin_slots(np.array(done.read, np.int32))
        return _Done()

    def _lose(self, order: Order, progress: Progress) -> None:
        """Take an order for failed; it still uses its memory."""
        if order in self._loads:
            if not self._loads[order]:
                progress.lost.append(order.key)
            self._loads[order] = True
        elif order in self._stores:
            self._stores[order] = True

    def _take(self, store: Store, progress: Progress) -> None:
        self._store = store
        self.slots = store.shape.slots
        if self._uncleared:
            self.clear()  # again: what was ordered since then has slots of an index that is no more
        else:
            self._generation = store.generation
        progress.notes.append(f"the disk tier is back, with {store.index.used} chunks")

    def _measure(self, events: Sequence[Event]) -> None:
        """Learn how fast the disk is from what it has read since it was asked, or since the last look."""
        ends = [
            event.at_s
            for event in events
            if isinstance(event, Ended) and event.error is None and not event.order.write
        ]
        if ends and max(ends) > self._reading_since_s:  # an orphan may have ended before the first load began
            self.break_even.read.measured(len(ends) * self.block_bytes, max(ends) - self._reading_since_s)
            self._reading_since_s = max(ends)

    def _count(self, ended: Ended) -> None:
        counts, order = self._counts, ended.order
        if isinstance(ended.error, CorruptBlockError):
            counts.corrupt += 1
        elif ended.error is not None:
            counts.failed += 1
        elif order.write:
            counts.store_bytes += self.block_bytes
            counts.store_seconds += ended.seconds
        else:
            counts.load_bytes += self.block_bytes
            counts.load_seconds += ended.seconds
