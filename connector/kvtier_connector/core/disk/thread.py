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
from typing import Final

import numpy as np

from kvtier_connector.core.disk.checksum import bound_checksum
from kvtier_connector.core.disk.health import Health
from kvtier_connector.core.disk.io.engine import BlockIO, IOEngine
from kvtier_connector.core.disk.io.engine import Ended as IOEnded
from kvtier_connector.core.disk.journal import Entries, Shape
from kvtier_connector.core.disk.orders import (
    Clear,
    Cleared,
    Down,
    Ended,
    Event,
    Forget,
    Message,
    Order,
    Overdue,
    Up,
)
from kvtier_connector.core.disk.store import Store
from kvtier_connector.errors import ConnectorError, CorruptBlockError, DiskError

_LOOK_S: Final = 0.25
"""How often a disk that has something to do is looked after; nothing waits for it."""
_TOLD_AT_ONCE: Final = 16
"""Blocks after which who waits is woken while others are still being read: each time takes the interpreter's
lock from this thread."""
_CHECK_S: Final = 1.0
"""How often the folder is looked for."""
_AT_ONCE_BYTES: Final = 1 << 20
"""What is prepared before the disk is given it: a third of a millisecond's work for a fast one, and few
calls of the kernel."""
_SHARE_OF_WRITES: Final = 4
"""Of the transfers under way one in so many may be a write while there is something to read."""


class DiskThread:
    """Serves the orders for one store, and for those that come after it.

    Args:
        store: opened.
        reopen: opens it again.
        engine: what talks to the kernel.
        timeout_s: how long the disk may have one block.
    """

    def __init__(self, store: Store, reopen: Callable[[], Store], engine: IOEngine, timeout_s: float) -> None:
        self._store: Store | None = store
        self._leaving: Store | None = None
        self._reopen = reopen
        self._engine = engine
        self._timeout_s = timeout_s
        self._health = Health()
        self._retry_at_s = 0.0
        self._check_at_s = 0.0
        self._generation = store.generation
        self._was_cleared = self._clear_is_due = False
        self._inbox = deque[Message]()
        self._reads = deque[Order]()
        self._writes = deque[Order]()
        self._flying = dict[int, tuple[Order, int]]()
        self._flying_reads = 0
        self._next_tag = 0
        self._events = deque[Event]()
        self._taken = list[Event]()
        self._told = threading.Event()
        self._turned_at_s = time.monotonic()
        self._closing = False
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
            found.append(self._events[0])  # before it leaves there: the thread always sees it, see _untold
            self._events.popleft()
        return found

    def wait(self, timeout_s: float) -> bool:
        """Return when there is an event, or after the timeout; tells which."""
        return self._told.wait(timeout_s)

    def is_stuck(self) -> bool:
        """Tell whether the operating system has not let go of the thread for longer than a block may take."""
        return time.monotonic() - self._turned_at_s > self._timeout_s + _CHECK_S

    def close(self, timeout_s: float) -> None:
        """End the thread; a disk that hangs is waited for no longer than the timeout."""
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
        landed = [(io, *self._landed(io)) for io in self._engine.ended(self._patience_s())]
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
        self._wake_waiting()

    def _patience_s(self) -> float:
        if self._inbox:
            return 0.0
        return _LOOK_S if self._flying or self._store is None else _CHECK_S

    def _take_messages(self) -> None:
        while self._inbox:
            message = self._inbox.popleft()
            if isinstance(message, Order):
                if message.generation != self._generation or self._store is None:
                    self._end(message, DiskError("the disk tier has let go of this block"))
                else:
                    (self._writes if message.write else self._reads).append(message)
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
        # Also if it fails here: no store is ever up again with what was before, or leaves what comes after.
        self._was_cleared = self._clear_is_due = True
        if self._store is not None:
            self._store.clear()
            self._store.generation = clear.generation
            self._clear_is_due = False

    def _feed(self, store: Store) -> None:
        """Keep the disk busy, with reads first, because a request waits for them."""
        slot_bytes = store.segments.slot_bytes
        room = self._engine.depth - len(self._flying)
        self._hand_over(self._next_reads(store), slot_bytes, room)
        # What was written for an earlier generation could still land in a slot that was given out again.
        if any(order.generation != self._generation for order, _ in self._flying.values()):
            return
        depth = self._engine.depth
        writing = sum(order.write for order, _ in self._flying.values())
        most = depth if writing == len(self._flying) else max(1, depth // _SHARE_OF_WRITES)
        room = max(0, min(most - writing, depth - len(self._flying)))
        self._hand_over(self._next_writes(store), slot_bytes, room)

    def _hand_over(self, ios: Iterator[BlockIO], slot_bytes: int, most: int) -> None:
        """Give the disk the first of some transfers, a few at a time: it begins before all are prepared."""
        at_once = max(1, _AT_ONCE_BYTES // slot_bytes)
        while few := list(islice(ios, min(most, at_once))):
            self._engine.submit(few)
            most -= len(few)

    def _next_reads(self, store: Store) -> Iterator[BlockIO]:
        while self._reads:
            order = self._reads.popleft()
            expected = store.checksum(order.slot)
            if expected is None:
                self._end(order, CorruptBlockError("nothing has been written to its slot"))
            else:
                yield self._io(store, order, expected)

    def _next_writes(self, store: Store) -> Iterator[BlockIO]:
        while self._writes and not self._inbox:
            order = self._writes.popleft()
            checksum = _checksum(store, order)
            if checksum is None:
                self._end(order, _taken_back())
            else:
                store.overwriting(order.slot)
                yield self._io(store, order, checksum)

    def _io(self, store: Store, order: Order, checksum: int) -> BlockIO:
        place = store.segments.place(order.slot)
        tag = self._next_tag
        self._next_tag += 1
        self._flying[tag] = order, checksum
        self._flying_reads += not order.write
        return BlockIO(tag, order.write, place.descriptor, place.offset, order.parts)

    def _landed(self, io: IOEnded) -> tuple[Order, int]:
        """Take a transfer off those under way; returns its order and checksum."""
        order, checksum = self._flying.pop(io.io.tag)
        self._flying_reads -= not order.write
        return order, checksum

    def _settle(self, landed: Sequence[tuple[IOEnded, Order, int]]) -> None:
        """Check what was read, put down what was written, and tell the owner of both."""
        written = list[tuple[Order, int, float]]()
        for io, order, checksum in landed:
            if io.error or not order.write:  # a write has succeeded when it is put down
                self._health = self._health.after(io.error)
            error: Exception | None = io.error
            if order.generation != self._generation or self._store is None:
                error = error or DiskError("the disk tier has let go of this block")
            if error is None and order.write:
                written.append((order, checksum, io.seconds))
                continue
            if error is None and self._store:
                found = _checksum(self._store, order)
                if found != checksum:
                    error = _taken_back() if found is None else CorruptBlockError("its checksum is wrong")
            self._end(order, error, io.seconds)
        if written and self._store:
            self._put_down(self._store, written)
        if self._health.is_down and self._store is not None:
            reason = next((str(io.error) for io, _, _ in reversed(landed) if io.error), "it fails")
            self._go_down(reason)

    def _put_down(self, store: Store, written: list[tuple[Order, int, float]]) -> None:
        entries = _entries([(order.slot, order.key, checksum) for order, checksum, _ in written], store.shape)
        error: DiskError | None = None
        try:
            store.record(entries, ())
            self._health = self._health.after(None)
        except DiskError as failure:
            error = failure
        for order, _, seconds in written:
            self._end(order, error, seconds)
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
            if store.wants_compaction and not self._reads:
                store.compact(self._untold(store))
        if self._leaving is not None and not self._flying:
            self._leaving.close()
            self._leaving = None

    def _bound_journal(self, store: Store) -> None:
        """Keep to the space that there is, also while there is much to read."""
        if store.journal_is_full:
            store.compact(self._untold(store))

    def _untold(self, store: Store) -> Entries:
        """Return the blocks that are put down and may still be pending for the owner of the index."""
        later = self._events.copy()  # first: what is taken meanwhile is then in both
        key_of = {
            event.order.slot: event.order.key
            for event in (*self._taken, *later)
            if isinstance(event, Ended) and event.order.write and event.error is None
            if event.order.generation == self._generation
        }
        blocks = ((slot, key, store.checksum(slot)) for slot, key in key_of.items())
        return _entries([(slot, key, it) for slot, key, it in blocks if it is not None], store.shape)

    def _go_down(self, reason: str) -> None:
        """Let go of the store, and of what is ordered of it."""
        if self._store is None:
            return
        self._leaving, self._store = self._store, None
        self._retry_at_s = time.monotonic() + self._health.retry_s
        self._refuse(DiskError(reason))
        for order, _ in self._flying.values():
            self._tell(Overdue(order))
        self._tell(Down(reason))

    def _refuse(self, error: DiskError) -> None:
        for queue in (self._reads, self._writes):
            while queue:
                self._end(queue.popleft(), error)

    def _try_again(self) -> None:
        """Open the store again, when nothing of the old one is under way."""
        if self._leaving is not None or time.monotonic() < self._retry_at_s:
            return
        self._health = self._health.tried_again()  # until a block has shown that it works
        try:
            store = self._opened_again()
        except ConnectorError:
            self._retry_at_s = time.monotonic() + self._health.retry_s
            return
        self._health = Health(retry_s=self._health.retry_s)
        self._generation = store.generation
        self._store = store
        self._tell(Up(store))

    def _opened_again(self) -> Store:
        store = self._reopen()
        if self._was_cleared:
            store.index.clear()
            try:
                store.clear()
            except DiskError:
                store.close()  # or the folder would be in use, by this process
                raise
            self._clear_is_due = False
        return store

    def _end(self, order: Order, error: Exception | None, seconds: float = 0.0) -> None:
        self._tell(Ended(order, seconds, time.monotonic(), error))

    def _tell(self, event: Event) -> None:
        self._events.append(event)
        if not isinstance(event, Ended):
            self._told.set()

    def _wake_waiting(self) -> None:
        """Wake who waits for events, when there is nothing more to read or enough has been read."""
        reading = self._reads or self._flying_reads
        if self._events and (not reading or len(self._events) >= _TOLD_AT_ONCE):
            self._told.set()

    def _finish(self) -> None:
        while self._inbox:
            with suppress(DiskError):
                self._take_messages()
        self._refuse(DiskError("the disk tier is closed"))
        until = time.monotonic() + _CHECK_S
        while self._flying and time.monotonic() < until:
            with suppress(DiskError):
                self._settle([(io, *self._landed(io)) for io in self._engine.ended(_LOOK_S)])
        self._told.set()
        self._engine.close()
        if self._flying:
            return
        for store in (self._store, self._leaving):
            if store is not None:
                store.close()
        if self._clear_is_due:
            with suppress(ConnectorError):
                self._opened_again().close()


def _checksum(store: Store, order: Order) -> int | None:
    """Return the checksum of what is in an order's memory, or None if that was taken back."""
    try:
        return bound_checksum(store.shape.namespace, order.key, *order.parts)
    except ValueError:  # a memoryview that was released
        return None


def _taken_back() -> DiskError:
    return DiskError("its memory was taken back")


def _entries(blocks: Sequence[tuple[int, bytes, int]], shape: Shape) -> Entries:
    """Return blocks, each a slot, a key and a checksum, as the journal takes them."""
    return Entries(
        np.array([slot for slot, _, _ in blocks], np.int32),
        np.frombuffer(b"".join(key for _, key, _ in blocks), np.uint8).reshape(-1, shape.key_bytes),
        np.array([checksum for _, _, checksum in blocks], np.uint64),
    )
