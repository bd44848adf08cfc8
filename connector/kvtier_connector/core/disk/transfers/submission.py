"""Handing orders over to the disk: reads first, because requests wait for them."""

from collections.abc import Iterator, Sequence, Sized
from itertools import islice
from typing import Final, TypeGuard

from kvtier_connector.core.behind.messages import Order
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.io.engine import BlockIO, IOEngine
from kvtier_connector.core.disk.transfers.orders import InFlight, OrderQueue, Outbox, take_run
from kvtier_connector.errors import CorruptBlockError, DiskError

FIRST_BYTES: Final = 1 << 20
"""What is prepared before the disk is given it: a third of a millisecond's work for a fast one. The next lots
are larger, because the disk has something to do, and each takes a call of the kernel."""
_SHARE_OF_WRITES: Final = 4
"""Of the transfers under way one in so many may be a write while there is something to read."""


class Submitter:
    """Turns orders that wait into transfers under way."""

    def __init__(
        self,
        engine: IOEngine,
        queue: OrderQueue,
        in_flight: InFlight,
        outbox: Outbox,
        *,
        inbox: Sized,
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._in_flight = in_flight
        self._outbox = outbox
        self._inbox = inbox

    def submit(self, store: Store, generation: int) -> None:
        """Give the disk as much as it takes at a time."""
        self._hand_over(store, self._reads(store), self._engine.depth - len(self._in_flight))
        # What was written for an earlier generation could still land in a slot that was given out again.
        if any(order.generation != generation for order in self._in_flight.orders()):
            return
        if self._engine.in_flight > len(self._in_flight):
            return  # and so could what a probe writes that was not waited for any longer
        most = writes_to_begin(self._engine.depth, self._in_flight.reads, self._in_flight.writes)
        self._hand_over(store, self._writes(store), most)

    def _hand_over(self, store: Store, ios: Iterator[BlockIO], most: int) -> None:
        """Give the disk the first of some transfers; it begins before all are prepared."""
        first = max(1, FIRST_BYTES // store.segments.slot_bytes)
        for some in lots(islice(ios, most), first):
            self._engine.submit(some)

    def _reads(self, store: Store) -> Iterator[BlockIO]:
        while self._queue.reads:
            orders = take_run(self._queue.reads, store.segments, self._engine.joined_bytes)
            expected = [store.checksum(order.slot) for order in orders]
            if _all_known(expected):
                yield self._in_flight.begin(store, orders, expected)
            else:
                self._drop(orders, expected, CorruptBlockError("nothing has been written to its slot"))
        while self._queue.continued:
            yield self._in_flight.go_on(store, self._queue.continued.popleft())

    def _writes(self, store: Store) -> Iterator[BlockIO]:
        while self._queue.writes and not self._inbox:
            orders = take_run(self._queue.writes, store.segments, self._engine.joined_bytes)
            checksums = [store.checksum_in_memory(order.key, order.memory) for order in orders]
            if _all_known(checksums):
                for order in orders:
                    store.begin_overwrite(order.slot)
                yield self._in_flight.begin(store, orders, checksums)
            else:
                self._drop(orders, checksums, DiskError("its memory was taken back"))

    def _drop(self, orders: Sequence[Order], checksums: Sequence[int | None], error: Exception) -> None:
        """End the orders that have no checksum; the others wait again, and are no neighbours any more."""
        for order, checksum in zip(orders, checksums, strict=True):
            if checksum is None:
                self._outbox.end(order, error)
        known = [order for order, checksum in zip(orders, checksums, strict=True) if checksum is not None]
        self._queue.put_back(known)


def writes_to_begin(depth: int, reads: int, writes: int) -> int:
    """Return how many more writes may be begun."""
    most = max(1, depth // _SHARE_OF_WRITES) if reads else depth
    return max(0, min(most - writes, depth - reads - writes))


def lots(ios: Iterator[BlockIO], first: int) -> Iterator[list[BlockIO]]:
    """Yield transfers, made as they are taken, in lots: the first of so many, each other twice as large."""
    many = first
    while lot := list(islice(ios, many)):
        yield lot
        many *= 2


def _all_known(checksums: list[int | None]) -> TypeGuard[list[int]]:
    return None not in checksums
