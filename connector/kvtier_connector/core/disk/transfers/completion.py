"""What becomes of transfers that have ended, and of their orders; and the journal, written anew."""

import time
from collections.abc import Sequence
from enum import Enum

from kvtier_connector.core.behind.messages import Ended, Order
from kvtier_connector.core.disk.files.journal import entries_of
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.io.engine import Completion
from kvtier_connector.core.disk.probe import is_probe
from kvtier_connector.core.disk.transfers.orders import (
    EndedTransfer,
    InFlight,
    OrderQueue,
    Outbox,
    PartialReads,
    Transfer,
)
from kvtier_connector.core.disk.transfers.reopening_store import ReopeningStore
from kvtier_connector.errors import CorruptBlockError, DiskError


def compact(store: Store, generation: int, outbox: Outbox) -> None:
    """Write a store's journal anew, with the blocks that may still be pending in the index."""
    key_of = {
        event.order.slot: event.order.key
        for event in outbox.unacknowledged_events()
        if isinstance(event, Ended) and event.order.write and event.error is None
        if event.order.generation == generation
    }
    checksums = ((slot, key, store.checksum(slot)) for slot, key in key_of.items())
    blocks = [(slot, key, checksum) for slot, key, checksum in checksums if checksum is not None]
    store.compact(entries_of(blocks, store.shape.key_bytes))


def compact_if_full(store: Store, generation: int, outbox: Outbox) -> None:
    """Keep the journal within its space, also while there is much to read."""
    if store.journal_is_full:
        compact(store, generation, outbox)


class AfterTransfer(Enum):
    """What follows a transfer that has ended."""

    APART = "each of its orders is tried by itself: whose fault it was, is seen then"
    NEXT_PART = "the next part of its block is read"
    WORKER = "a worker checks its block"
    END = "its orders end"


_APART, _NEXT_PART, _WORKER, _END = AfterTransfer  # looked up in the class they take several times as long


def after_transfer(
    transfer: Transfer, *, has_failed: bool, is_wanted: bool, is_checked_by_worker: bool
) -> AfterTransfer:
    """Return what follows a transfer."""
    if has_failed or not is_wanted:
        return _APART if is_wanted and len(transfer.orders) > 1 else _END
    if not transfer.is_last:
        return _NEXT_PART
    return _WORKER if is_checked_by_worker else _END


class Completer:
    """Checks what was read, puts down what was written, and tells of both."""

    def __init__(
        self,
        served: ReopeningStore,
        queue: OrderQueue,
        in_flight: InFlight,
        partial_reads: PartialReads,
        outbox: Outbox,
    ) -> None:
        self._served = served
        self._queue = queue
        self._in_flight = in_flight
        self._partial_reads = partial_reads
        self._outbox = outbox

    def land(self, completions: Sequence[Completion], *, is_closing: bool) -> list[EndedTransfer]:
        """Take transfers off those under way; returns those with which their orders end."""
        ended, now = list[EndedTransfer](), time.monotonic()
        for completion in completions:
            if is_probe(completion.io):
                continue  # that was not waited for any longer
            transfer = self._in_flight.end(completion.io)
            order = transfer.order
            done = EndedTransfer(completion, transfer, now)
            follows = after_transfer(
                transfer,
                has_failed=completion.error is not None,
                is_wanted=not is_closing and self._served.serves(order),
                is_checked_by_worker=self._partial_reads.is_checked_by_worker(order),
            )
            if follows is _END:
                ended.append(done)
            elif follows is _WORKER:
                self._partial_reads.leave_to_worker(done)
            elif follows is _NEXT_PART:
                self._queue.continued.append(transfer)
                self._partial_reads.tell_of_part(transfer)
            else:
                self._queue.continued += transfer.apart()
        return ended

    def end(self, ended: Sequence[EndedTransfer]) -> None:
        """End the orders of transfers, also if what was written cannot be put down (DiskError)."""
        written = list[EndedTransfer]()
        for done in ended:
            transfer, failure = done.transfer, done.completion.error
            first = transfer.order
            if failure or not first.write:  # a write has succeeded when it is put down
                self._served.on_transfer_ended(failure)
            error: Exception | None = failure
            if not transfer.is_last or not self._served.serves(first):
                error = error or DiskError("the disk tier has let go of this block")
            if error is None and first.write:
                written.append(done)
                continue
            for order, checksum in transfer.blocks():
                self._outbox.end(order, error or self._mistake(done, order, checksum), done)
        if written and self._served.store is not None:
            self._put_down(self._served.store, written)

    def _mistake(self, done: EndedTransfer, order: Order, checksum: int) -> Exception | None:
        """Return what is wrong with a block that was read, or None."""
        if done.is_right or self._served.store is None:
            return None
        actual = self._served.store.checksum_in_memory(order.key, order.memory)
        if actual == checksum:
            return None
        if actual is None:
            return DiskError("its memory was taken back")
        return CorruptBlockError("its checksum is wrong")

    def _put_down(self, store: Store, written: Sequence[EndedTransfer]) -> None:
        """Have the next start find blocks that were written."""
        blocks = [
            (order.slot, order.key, checksum)
            for done in written
            for order, checksum in done.transfer.blocks()
        ]
        error: DiskError | None = None
        try:
            store.record(entries_of(blocks, store.shape.key_bytes), ())
            self._served.on_transfer_ended(None)
        except DiskError as failure:
            error = failure
        for done in written:
            for order in done.transfer.orders:
                self._outbox.end(order, error, done)
        if error:
            raise error
        compact_if_full(store, self._served.generation, self._outbox)
