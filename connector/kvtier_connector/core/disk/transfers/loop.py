"""The thread that reads and writes the disk tier's blocks, so that nobody else ever waits for a disk.

It checks what it reads, puts down what it has written, and lets go of a disk that fails or hangs until that
can be used again. The thread that owns the index orders and is told; neither waits for the other.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from kvtier_connector.core.behind.messages import Clear, Cleared, Down, KeepRates, Order, Probe, Probed
from kvtier_connector.core.copies.arrivals import Arrivals
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.io.engine import IOEngine
from kvtier_connector.core.disk.probe import probe
from kvtier_connector.core.disk.timings import DEFAULT_TIMINGS, Timings
from kvtier_connector.core.disk.transfers.completion import Completer, compact, compact_if_full
from kvtier_connector.core.disk.transfers.messages import Event, Forget, Message, NotForgotten, Up
from kvtier_connector.core.disk.transfers.orders import (
    EndedTransfer,
    InFlight,
    OrderQueue,
    Outbox,
    PartialReads,
)
from kvtier_connector.core.disk.transfers.reopening_store import ReopeningStore
from kvtier_connector.core.disk.transfers.submission import Submitter
from kvtier_connector.errors import DiskError

_WAKE_AFTER_BLOCKS: Final = 16
"""Blocks after which who waits is woken while others are still being read: each time takes the interpreter's
lock from this thread."""


class DiskLoop:
    """Serves orders. An order waits (orders.py), is under way (submission.py), and ends (completion.py)."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        store: Store,
        reopen: Callable[[], Store],
        engine: IOEngine,
        timeout_s: float,
        arrivals: Arrivals | None = None,
        *,
        news: threading.Event | None = None,
        timings: Timings = DEFAULT_TIMINGS,
    ) -> None:
        self.engine = engine  # what talks to the kernel
        self.timeout_s = timeout_s  # how long the disk may have one block
        self.timings = timings  # how long to wait for everything else
        self.inbox = deque[Message]()  # the messages of the owner of the index
        self.partial_reads = PartialReads(arrivals, store.shape.namespace, timings.worker_patience_s)
        self.outbox = Outbox(self.partial_reads, news)  # the events for it
        self.turned_at_s = time.monotonic()  # when the last turn began, by time.monotonic()
        self.is_closing = False  # whether nobody waits for reads any more
        self._queue = OrderQueue()
        self._in_flight = InFlight()
        self._served = ReopeningStore(store, reopen, timings)
        self._submitter = Submitter(engine, self._queue, self._in_flight, self.outbox, inbox=self.inbox)
        self._completer = Completer(
            self._served, self._queue, self._in_flight, self.partial_reads, self.outbox
        )
        self._check_at_s = 0.0
        self._probe_due = False

    @property
    def has_begun(self) -> bool:
        """Whether the disk has as much of what was ordered as it takes at a time."""
        return not self.inbox and (not self._queue.reads or len(self._in_flight) >= self.engine.depth)

    def turn(self) -> None:
        """Wait for something to do, and do it. Raises DiskError: the disk is full, read-only or failing."""
        self.turned_at_s = time.monotonic()
        ended = [*self._land(self._patience_s()), *self.partial_reads.take_checked()]
        # Now, when all that has ended is known: what follows may take as long as the file system likes.
        is_late = bool(self.engine.overdue(self.timeout_s))
        try:
            self._take_messages()
            self._submit_or_reopen()  # before looking at what has come: meanwhile the disk is not idle
        finally:
            self._end(ended)
        self._look_after(is_late=is_late)
        self._probe_if_idle()
        self._wake_waiting()

    def go_down(self, reason: str) -> None:
        """Let go of the store, and of what is ordered of it; the reason is for people."""
        if self._served.store is None:
            return
        self._served.let_go()
        error = DiskError(reason)
        self._refuse_waiting(error)
        for order in self._in_flight.orders():
            self.outbox.overdue(order, error)
        self.outbox.tell(Down(reason))

    def finish(self, write_until_s: float) -> None:
        """End every order: write what waits to be, for the next engine, and let go of everything else."""
        while self.inbox:
            with suppress(DiskError):
                self._take_messages()
        with suppress(DiskError, OSError):
            while self._served.store is not None and self._queue.writes and time.monotonic() < write_until_s:
                self._submitter.submit(self._served.store, self._served.generation)
                self._end(self._land(self.timings.look_s))
        self._refuse_waiting(DiskError("the disk tier is closed"))
        until_s = time.monotonic() + self.timings.check_s
        while self._in_flight and time.monotonic() < until_s:
            with suppress(DiskError):
                self._end(self._land(self.timings.look_s))
        self.outbox.wake()
        self.engine.close()
        if not self._in_flight:
            self._served.close()

    # ---- the steps of a turn ----

    def _patience_s(self) -> float:
        if self.inbox:
            return 0.0
        if self.partial_reads:
            return self.timings.verdict_s
        is_busy = self._in_flight or self._served.store is None
        return self.timings.look_s if is_busy else self.timings.check_s

    def _land(self, patience_s: float) -> list[EndedTransfer]:
        return self._completer.land(self.engine.take_completions(patience_s), is_closing=self.is_closing)

    def _take_messages(self) -> None:
        while self.inbox:
            try:
                self._do(self.inbox[0])
            finally:  # not before: what has left is taken for done
                self.inbox.popleft()

    def _do(self, message: Message) -> None:
        match message:
            case Order() if self._served.serves(message):
                self._queue.add(message)
            case Order():
                self.outbox.end(message, DiskError("the disk tier has let go of this block"))
            case Probe():
                self._probe_due = True
            case KeepRates(text):
                if self._served.store is not None:
                    with suppress(DiskError):  # a tier serves without them, too
                        self._served.store.keep_rates(text)
            case Forget():
                self._forget(message)
            case Clear(generation):
                self._refuse_waiting(DiskError("the disk tier was cleared"))
                try:
                    self._served.clear(generation)
                finally:  # a store that cannot be cleared now is, before it is used again
                    self.outbox.tell(Cleared())

    def _forget(self, forget: Forget) -> None:
        store, is_put_down = self._served.store, False
        try:
            if store is not None and forget.generation == self._served.generation:
                store.record(store.shape.nothing, forget.slots)
                is_put_down = True
                compact_if_full(store, forget.generation, self.outbox)
        finally:  # its owner may not have heard yet that the store was let go of, or is another
            if forget.is_promised and not is_put_down:
                self.outbox.tell(NotForgotten())

    def _submit_or_reopen(self) -> None:
        store = self._served.store
        if store is not None:
            self._submitter.submit(store, self._served.generation)
        elif (reopened := self._served.try_again()) is not None:
            self.outbox.tell(Up(reopened))

    def _end(self, ended: Sequence[EndedTransfer]) -> None:
        self._completer.end(ended)
        if self._served.is_failing:
            errors = [str(transfer.completion.error) for transfer in ended if transfer.completion.error]
            self.go_down(errors[-1] if errors else "it fails")

    def _look_after(self, *, is_late: bool) -> None:
        now_s = time.monotonic()
        store = self._served.store
        if store is not None and is_late:
            self.go_down(f"a block has taken longer than {self.timeout_s:g} s")
        elif store is not None and now_s >= self._check_at_s:
            self._check_at_s = now_s + self.timings.check_s
            store.check()
            if store.wants_compaction and not self._queue.has_reads:
                compact(store, self._served.generation, self.outbox)
        if not self.engine.in_flight:
            self._served.close_old()

    def _probe_if_idle(self) -> None:
        store = self._served.store
        is_busy = self.engine.in_flight or self.partial_reads or self._queue.has_reads
        if not self._probe_due or store is None or is_busy:
            return
        self._probe_due = False
        held, free = store.slots_for_probing(self.engine.depth)
        measured = probe(store.segments, self.engine, held, free, self.timings.probe_patience_s)
        if measured is not None:
            self.outbox.tell(Probed(*measured))

    def _wake_waiting(self) -> None:
        """Wake who waits for events, when there is nothing more to read or enough has been read."""
        is_reading = self._queue.has_reads or self._in_flight.reads
        if self.outbox and (not is_reading or len(self.outbox) >= _WAKE_AFTER_BLOCKS):
            self.outbox.wake()

    # ---- the end ----

    def _refuse_waiting(self, error: DiskError) -> None:
        for order in [*self._queue.take_all(), *self.partial_reads.drop_unchecked()]:
            self.outbox.end(order, error)


class DiskThread:
    """Serves orders, beginning now."""

    def __init__(self, loop: DiskLoop) -> None:
        self._loop = loop
        self._check_s = loop.timings.check_s
        self._write_until_s = 0.0
        self._thread = threading.Thread(target=self._run, name="kvtier-disk", daemon=True)
        self._thread.start()

    def send(self, messages: Iterable[Message]) -> None:
        """Take messages on and return at once."""
        self._loop.inbox.extend(messages)
        self._loop.engine.wake()

    def take_events(self) -> list[Event]:
        """Return what has happened since the last call; all of that call's has been taken note of."""
        return self._loop.outbox.take()

    def wait(self, timeout_s: float) -> bool:
        """Return when there is an event, or after the timeout; tells which."""
        return self._loop.outbox.wait(timeout_s)

    def has_begun(self) -> bool:
        """Tell whether the disk has as much of what was ordered as it takes at a time."""
        return self._loop.has_begun

    def has_taken_all(self) -> bool:
        """Tell whether the thread has taken on all that it was sent, and nothing it told is left to take."""
        return not self._loop.inbox and not self._loop.outbox  # in this order: it tells, then takes the next

    def is_stuck(self) -> bool:
        """Tell whether the operating system has not let go of the thread for longer than a block may take."""
        return time.monotonic() - self._loop.turned_at_s > self._loop.timeout_s + self._check_s

    def close(self, timeout_s: float) -> None:
        """End the thread once it has written what waits to be; a disk that takes longer is not waited for."""
        self._write_until_s = time.monotonic() + timeout_s - 2 * self._check_s
        self._loop.is_closing = True
        self._loop.engine.wake()
        self._thread.join(timeout_s)
        self._loop.outbox.acknowledge()

    def _run(self) -> None:
        while not self._loop.is_closing:
            try:
                self._loop.turn()
            except DiskError as error:
                self._loop.go_down(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, the engine goes on without a disk
                self._loop.go_down(f"{type(error).__name__}: {error}")
                time.sleep(self._check_s)
        self._loop.finish(self._write_until_s)
