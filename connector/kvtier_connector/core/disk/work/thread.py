"""The thread that reads and writes the disk tier's blocks, so that nobody else ever waits for a disk.

It checks what it reads, puts down what it has written, and lets go of a disk that fails or hangs until that
can be used again. The thread that owns the index orders and is told; neither waits for the other.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, TypeGuard

from kvtier_connector.core.copies.arrivals import Arrivals
from kvtier_connector.core.disk.files.journal import entries_of
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.io.engine import BlockIO, IOEngine
from kvtier_connector.core.disk.io.engine import Ended as IOEnded
from kvtier_connector.core.disk.work.flights import Flight, Flights, lots, next_run
from kvtier_connector.core.disk.work.orders import (
    Clear,
    Cleared,
    Down,
    Ended,
    Event,
    Forget,
    Keep,
    Message,
    Order,
    Overdue,
    Probe,
    Probed,
    Up,
)
from kvtier_connector.core.disk.work.partial_reads import Landed, PartedReads
from kvtier_connector.core.disk.work.recovery import Reopening
from kvtier_connector.core.disk.work.unacknowledged import untold
from kvtier_connector.core.disk.worth.probe import is_probe, probe
from kvtier_connector.errors import CorruptBlockError, DiskError

_LOOK_S: Final = 0.25
"""How often a disk that has something to do is looked after; nothing waits for it."""
_TOLD_AT_ONCE: Final = 16
"""Blocks after which who waits is woken while others are still being read: each time takes the interpreter's
lock from this thread."""
_VERDICT_S: Final = 0.02
"""How often it is looked for what workers have found."""
_CHECK_S: Final = 1.0
"""How often the folder is looked for."""
_FIRST_BYTES: Final = 1 << 20
"""What is prepared before the disk is given it: a third of a millisecond's work for a fast one. The next lots
are larger, because the disk has something to do, and each takes a call of the kernel."""
_SHARE_OF_WRITES: Final = 4
"""Of the transfers under way one in so many may be a write while there is something to read."""


class DiskThread:
    """Serves the orders for one store, and for those that come after it.

    Args:
        store: opened.
        reopen: opens it again.
        engine: what talks to the kernel.
        timeout_s: how long the disk may have one block.
        arrivals: where the workers are told of reads in parts; None if there are none.
    """

    def __init__(
        self,
        store: Store,
        reopen: Callable[[], Store],
        engine: IOEngine,
        timeout_s: float,
        arrivals: Arrivals | None = None,
    ) -> None:
        self._store: Store | None = store
        self._reopening = Reopening(reopen)
        self._engine = engine
        self._timeout_s = timeout_s
        self._check_at_s = 0.0
        self._generation = store.generation
        self._inbox = deque[Message]()
        self._reads = deque[Order]()
        self._writes = deque[Order]()
        self._partly = deque[Flight]()
        self._parted = PartedReads(arrivals, store.shape.namespace)
        self._flights = Flights()
        self._events = deque[Event]()
        self._taken = list[Event]()
        self._told = threading.Event()
        self._turned_at_s = time.monotonic()
        self._closing = self._probe_due = False
        self._write_until_s = 0.0
        self._thread = threading.Thread(target=self._run, name="kvtier-disk", daemon=True)
        self._thread.start()

    # ---- for the owner of the index ----

    def send(self, messages: Iterable[Message]) -> None:
        """Take messages on and return at once."""
        self._inbox.extend(messages)
        self._engine.wake()

    def events(self) -> list[Event]:
        """Return what has happened since the last call; all of that call's has been taken note of."""
        self._told.clear()
        self._taken = found = list[Event]()
        while self._events:
            found.append(self._events[0])  # before it leaves there: the thread always sees it, see _compact
            self._events.popleft()
        return found

    def wait(self, timeout_s: float) -> bool:
        """Return when there is an event, or after the timeout; tells which."""
        return self._told.wait(timeout_s)

    def has_begun(self) -> bool:
        """Tell whether the disk has as much of what was ordered as it takes at a time."""
        return not self._inbox and (not self._reads or len(self._flights) >= self._engine.depth)

    def is_stuck(self) -> bool:
        """Tell whether the operating system has not let go of the thread for longer than a block may take."""
        return time.monotonic() - self._turned_at_s > self._timeout_s + _CHECK_S

    def close(self, timeout_s: float) -> None:
        """End the thread once it has written what waits to be; a disk that takes longer is not waited for."""
        self._write_until_s = time.monotonic() + timeout_s - 2 * _CHECK_S
        self._closing = True
        self._engine.wake()
        self._thread.join(timeout_s)
        self._taken = []

    # ---- the thread ----

    def _run(self) -> None:
        while not self._closing:
            try:
                self._turn()
            except DiskError as error:
                self._go_down(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, the engine goes on without a disk
                self._go_down(f"{type(error).__name__}: {error}")
                time.sleep(_CHECK_S)
        self._finish()

    def _turn(self) -> None:
        self._turned_at_s = time.monotonic()
        landed = [*self._landed(self._engine.ended(self._patience_s())), *self._parted.take()]
        # Now, when all that has ended is known: what follows may take as long as the file system likes.
        is_late = bool(self._engine.overdue(self._timeout_s))
        try:
            self._take_messages()
            if self._store is None:
                self._try_again()
            else:
                self._feed(self._store)  # before looking at what has come: meanwhile the disk is not idle
        finally:
            self._settle(landed)
        self._look_after(is_late=is_late)
        if self._probe_due and self._store is not None and self._is_idle:
            self._probe(self._store)
        self._wake_waiting()

    def _probe(self, store: Store) -> None:
        self._probe_due = False
        found = probe(store.segments, self._engine, *store.slots_for_probing(self._engine.depth))
        if found is not None:
            self._tell(Probed(*found))

    @property
    def _is_idle(self) -> bool:
        return not (self._engine.in_flight or self._parted or self._reads)

    def _patience_s(self) -> float:
        if self._inbox:
            return 0.0
        if self._parted:
            return _VERDICT_S
        return _LOOK_S if self._flights or self._store is None else _CHECK_S

    def _take_messages(self) -> None:
        while self._inbox:
            message = self._inbox.popleft()
            if isinstance(message, Order):
                if self._has_let_go_of(message):
                    self._end(message, DiskError("the disk tier has let go of this block"))
                else:
                    (self._writes if message.write else self._reads).append(message)
            elif isinstance(message, Probe):
                self._probe_due = True
            elif isinstance(message, Keep):
                if self._store is not None:
                    with suppress(DiskError):  # a tier serves without them, too
                        self._store.keep_rates(message.text)
            elif isinstance(message, Forget):
                if self._store is not None and message.generation == self._generation:
                    self._store.record(self._store.shape.nothing, message.slots)
                    self._bound_journal(self._store)
            else:
                self._clear(message)

    def _clear(self, clear: Clear) -> None:
        self._generation = clear.generation
        self._refuse(DiskError("the disk tier was cleared"))
        self._tell(Cleared())
        self._reopening.clear(self._store)

    def _feed(self, store: Store) -> None:
        """Keep the disk busy, with reads first, because a request waits for them."""
        room = self._engine.depth - len(self._flights)
        self._hand_over(store, self._next_reads(store), room)
        # What was written for an earlier generation could still land in a slot that was given out again.
        if any(order.generation != self._generation for order in self._flights.orders()):
            return
        if self._engine.in_flight > len(self._flights):
            return  # and so could what a probe writes that was not waited for any longer
        depth, under_way = self._engine.depth, len(self._flights)
        writing = under_way - self._flights.reads
        most = depth if writing == under_way else max(1, depth // _SHARE_OF_WRITES)
        room = max(0, min(most - writing, depth - under_way))
        self._hand_over(store, self._next_writes(store), room)

    def _hand_over(self, store: Store, ios: Iterator[BlockIO], most: int) -> None:
        """Give the disk the first of some transfers; it begins before all are prepared."""
        first = max(1, _FIRST_BYTES // store.segments.slot_bytes)
        for some in lots(islice(ios, most), first):
            self._engine.submit(some)

    def _next_reads(self, store: Store) -> Iterator[BlockIO]:
        while self._reads:
            orders = next_run(self._reads, store.segments, self._engine.joined_bytes)
            expected = [store.checksum(order.slot) for order in orders]
            if _all_known(expected):
                yield self._flights.begin(store, orders, expected)
            else:
                self._drop(orders, expected, CorruptBlockError("nothing has been written to its slot"))
        while self._partly:
            yield self._flights.go_on(store, self._partly.popleft())

    def _next_writes(self, store: Store) -> Iterator[BlockIO]:
        while self._writes and not self._inbox:
            orders = next_run(self._writes, store.segments, self._engine.joined_bytes)
            checksums = [store.checksum_in_memory(order.key, order.parts) for order in orders]
            if _all_known(checksums):
                for order in orders:
                    store.overwriting(order.slot)
                yield self._flights.begin(store, orders, checksums)
            else:
                self._drop(orders, checksums, _taken_back())

    def _drop(self, orders: Sequence[Order], checksums: Sequence[int | None], error: Exception) -> None:
        """End the orders that have no checksum; the others wait again, and are no neighbours any more."""
        queue = self._writes if orders[0].write else self._reads
        for order, checksum in zip(reversed(orders), reversed(checksums), strict=True):
            if checksum is None:
                self._end(order, error)
            else:
                queue.appendleft(order)

    def _landed(self, ended: Sequence[IOEnded]) -> list[Landed]:
        """Take transfers off those under way; returns those with which their orders end."""
        landed, now = list[Landed](), time.monotonic()
        for io in ended:
            if is_probe(io.io):
                continue  # that was not waited for any longer
            done = Landed(io, self._flights.end(io.io), now)
            flight = done.flight
            is_wanted = not (self._closing or self._has_let_go_of(flight.order))
            if io.error and is_wanted and len(flight.orders) > 1:
                self._partly += flight.apart()  # whose fault it is, is seen then
            elif io.error or not is_wanted:
                landed.append(done)
            elif not flight.is_last:
                self._partly.append(flight)
                self._parted.part(flight)
            elif not self._parted.leaves_to_worker(done):
                landed.append(done)
        return landed

    def _has_let_go_of(self, order: Order) -> bool:
        return order.generation != self._generation or self._store is None

    def _settle(self, landed: Sequence[Landed]) -> None:
        """Check what was read, put down what was written, and tell the owner of both."""
        written = list[Landed]()
        for done in landed:
            flight, failure = done.flight, done.io.error
            if failure or not flight.order.write:  # a write has succeeded when it is put down
                self._reopening.saw(failure)
            error: Exception | None = failure
            if not flight.is_last or self._has_let_go_of(flight.order):
                error = error or DiskError("the disk tier has let go of this block")
            if error is None and flight.order.write:
                written.append(done)
                continue
            for order, checksum in flight.blocks():
                self._end(order, error or self._mistake(done, order, checksum), done)
        if written and self._store:
            self._put_down(self._store, written)
        if self._reopening.gives_up and self._store is not None:
            reason = next((str(done.io.error) for done in reversed(landed) if done.io.error), "it fails")
            self._go_down(reason)

    def _mistake(self, done: Landed, order: Order, checksum: int) -> Exception | None:
        """Return what is wrong with a block that was read, or None."""
        if done.is_right or self._store is None:
            return None
        found = self._store.checksum_in_memory(order.key, order.parts)
        if found == checksum:
            return None
        return _taken_back() if found is None else CorruptBlockError("its checksum is wrong")

    def _put_down(self, store: Store, written: Sequence[Landed]) -> None:
        blocks = [
            (order.slot, order.key, checksum) for done in written for order, checksum in done.flight.blocks()
        ]
        error: DiskError | None = None
        try:
            store.record(entries_of(blocks, store.shape.key_bytes), ())
            self._reopening.saw(None)
        except DiskError as failure:
            error = failure
        for done in written:
            for order in done.flight.orders:
                self._end(order, error, done)
        if error:
            raise error
        self._bound_journal(store)

    def _look_after(self, *, is_late: bool) -> None:
        now = time.monotonic()
        store = self._store
        if store is not None and is_late:
            self._go_down(f"a block has taken longer than {self._timeout_s:g} s")
        elif store is not None and now >= self._check_at_s:
            self._check_at_s = now + _CHECK_S
            store.check()
            if store.wants_compaction and not self._reads and not self._partly:
                self._compact(store)
        if not self._engine.in_flight:
            self._reopening.close_old()

    def _bound_journal(self, store: Store) -> None:
        """Keep to the space that there is, also while there is much to read."""
        if store.journal_is_full:
            self._compact(store)

    def _compact(self, store: Store) -> None:
        later = self._events.copy()  # first: what is taken meanwhile is then in both
        store.compact(untold(store, self._generation, (*self._taken, *later)))

    def _go_down(self, reason: str) -> None:
        """Let go of the store, and of what is ordered of it."""
        if self._store is None:
            return
        self._reopening.let_go(self._store)
        self._store = None
        self._refuse(DiskError(reason))
        for order in self._flights.orders():
            self._tell(Overdue(order))
            self._parted.ended(order, DiskError(reason))
        self._tell(Down(reason))

    def _refuse(self, error: DiskError) -> None:
        partly = [*(flight.order for flight in self._partly), *self._parted.drop()]
        refused = [*self._reads, *self._writes, *partly]
        for queue in (self._reads, self._writes, self._partly):
            queue.clear()
        for order in refused:
            self._end(order, error)

    def _try_again(self) -> None:
        store = self._reopening.try_again()
        if store is not None:
            self._generation = store.generation
            self._store = store
            self._tell(Up(store))

    def _end(self, order: Order, error: Exception | None, done: Landed | None = None) -> None:
        seconds, at_s = (done.io.seconds, done.at_s) if done else (0.0, time.monotonic())
        self._events.append(Ended(order, seconds, at_s, error))
        self._parted.ended(order, error)  # last: who waits for it finds that the index's owner knows

    def _tell(self, event: Event) -> None:
        self._events.append(event)
        self._told.set()

    def _wake_waiting(self) -> None:
        """Wake who waits for events, when there is nothing more to read or enough has been read."""
        reading = self._reads or self._partly or self._flights.reads
        if self._events and (not reading or len(self._events) >= _TOLD_AT_ONCE):
            self._told.set()

    def _write_out(self) -> None:
        """Write what waits to be written, for the next engine."""
        with suppress(DiskError, OSError):
            while self._store is not None and self._writes and time.monotonic() < self._write_until_s:
                self._feed(self._store)
                self._settle(self._landed(self._engine.ended(_LOOK_S)))

    def _finish(self) -> None:
        while self._inbox:
            with suppress(DiskError):
                self._take_messages()
        self._write_out()
        self._refuse(DiskError("the disk tier is closed"))
        until = time.monotonic() + _CHECK_S
        while self._flights and time.monotonic() < until:
            with suppress(DiskError):
                self._settle(self._landed(self._engine.ended(_LOOK_S)))
        self._told.set()
        self._engine.close()
        if self._flights:
            return
        if self._store is not None:
            self._store.close()
        self._reopening.close()


def _all_known(checksums: list[int | None]) -> TypeGuard[list[int]]:
    return None not in checksums


def _taken_back() -> DiskError:
    return DiskError("its memory was taken back")
