"""Orders: those that wait for the disk, those under way, and what is told of those that end."""

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kvtier_connector.core.behind.event_queue import EventQueue
from kvtier_connector.core.behind.messages import Ended, Order, Overdue
from kvtier_connector.core.copies.arrivals import DOUBTED, FAILED, WHOLE, Arrivals
from kvtier_connector.core.disk.files.fingerprint import bound_seed
from kvtier_connector.core.disk.files.segments import Segments
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.io.engine import BlockIO, Completion
from kvtier_connector.core.disk.transfers.messages import Event

_MOST_PIECES: Final = 1024  # of a transfer's memory: IOV_MAX of readv(2)


class Transfer(NamedTuple):
    """One transfer: of neighbours on disk, of a block, or of a part of one."""

    orders: Sequence[Order]  # for which it is: neighbours on disk, or a single one
    checksums: Sequence[int]  # of each order's whole block
    part: int = 0  # which part of a read, from 0; -1 if none is under way yet

    @property
    def order(self) -> Order:
        """Return the first order: what holds for it of direction, generation and parts holds for all."""
        return self.orders[0]

    @property
    def is_last(self) -> bool:
        """Whether its orders end with it."""
        return self.part + 1 >= len(self.order.part_ends)

    def blocks(self) -> Iterator[tuple[Order, int]]:
        """Yield each order and its block's checksum."""
        return zip(self.orders, self.checksums, strict=True)

    def apart(self) -> Iterator["Transfer"]:
        """Yield what goes on with each order by itself, from the beginning."""
        return (Transfer((order,), (checksum,), -1) for order, checksum in self.blocks())


class InFlight:
    """The transfers under way, by their tags. An order has one at a time, which may be others' as well."""

    def __init__(self) -> None:
        self._by_tag = dict[int, Transfer]()
        self._next_tag = 0
        self.reads = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._by_tag)

    @property
    def writes(self) -> int:
        """How many of them are writes."""
        return len(self._by_tag) - self.reads

    def orders(self) -> Iterator[Order]:
        """Yield the orders for which something is under way."""
        return (order for transfer in self._by_tag.values() for order in transfer.orders)

    def begin(self, store: Store, orders: Sequence[Order], checksums: Sequence[int]) -> BlockIO:
        """Return the transfer of neighbours, or of a block's first part if its order has parts."""
        return self._begin(store, Transfer(orders, checksums))

    def go_on(self, store: Store, before: Transfer) -> BlockIO:
        """Return the transfer of the next part of a block."""
        return self._begin(store, before._replace(part=before.part + 1))

    def end(self, io: BlockIO) -> Transfer:
        """Take a transfer off those under way."""
        transfer = self._by_tag.pop(io.tag)
        self.reads -= not transfer.order.write
        return transfer

    def _begin(self, store: Store, transfer: Transfer) -> BlockIO:
        order, part = transfer.order, transfer.part
        place = store.segments.place(order.slot)
        memory, start = order.memory, 0
        if len(transfer.orders) > 1:
            memory = tuple([piece for order in transfer.orders for piece in order.memory])
        elif order.part_ends:
            (piece,) = memory
            start = order.part_ends[part - 1] if part else 0
            memory = (piece[start : None if transfer.is_last else order.part_ends[part]],)
        tag = self._next_tag
        self._next_tag += 1
        self._by_tag[tag] = transfer
        self.reads += not order.write
        return BlockIO(tag, order.write, place.descriptor, place.offset + start, memory)


class OrderQueue:
    """Orders that wait for the disk."""

    def __init__(self) -> None:
        self.reads = deque[Order]()  # in their order
        self.writes = deque[Order]()  # likewise
        # what an earlier transfer has left to do: a block's next part, or each of several blocks
        self.continued = deque[Transfer]()

    @property
    def has_reads(self) -> bool:
        """Whether something waits to be read."""
        return bool(self.reads or self.continued)

    def add(self, order: Order) -> None:
        """Have an order wait, behind the others of its direction."""
        (self.writes if order.write else self.reads).append(order)

    def put_back(self, orders: Sequence[Order]) -> None:
        """Have orders wait in front of the others."""
        for order in reversed(orders):
            (self.writes if order.write else self.reads).appendleft(order)

    def take_all(self) -> list[Order]:
        """Let go of everything; returns its orders."""
        orders = [*self.reads, *self.writes, *(transfer.order for transfer in self.continued)]
        for waiting in (self.reads, self.writes, self.continued):
            waiting.clear()
        return orders


def take_run(waiting: deque[Order], segments: Segments, most_bytes: int) -> list[Order]:
    """Take the first order, and those behind it that one transfer can move with it."""
    last = waiting.popleft()
    run = [last]
    most = min(most_bytes // segments.slot_bytes, _MOST_PIECES // len(last.memory))
    while waiting and len(run) < most and not last.part_ends:
        order = waiting[0]
        if order.part_ends or not segments.are_neighbours(last.slot, order.slot):
            break
        last = waiting.popleft()
        run.append(last)
    return run


class EndedTransfer(NamedTuple):
    """A transfer that has ended; its orders end when what was read has been checked, or written put down."""

    completion: Completion  # how it ended
    transfer: Transfer  # what it was
    at_s: float  # when that was seen, by time.monotonic()
    is_right: bool = False  # whether a worker has checked what was read


class PartialReads:
    """What workers are told, and have found; without `arrivals` each block is checked at once.

    The worker that loads a block checks it, too, on threads that would only wait meanwhile. The disk's thread
    hears of that, and checks those itself that no worker comes to.
    """

    def __init__(self, arrivals: Arrivals | None, namespace: int, patience_s: float) -> None:
        self._arrivals = arrivals
        self._namespace = namespace
        self.patience_s = patience_s
        self._unchecked = deque[EndedTransfer]()

    def __len__(self) -> int:
        """Return how many blocks are left to workers."""
        return len(self._unchecked)

    def tell_of_part(self, transfer: Transfer) -> None:
        """Tell of a part that is there, and is not the last."""
        if self._arrivals is not None:
            order = transfer.order
            if not transfer.part:
                seed = bound_seed(self._namespace, order.key)
                self._arrivals.expect(order.memory_slot, seed, transfer.checksums[0])
            self._tell(order, transfer.part + 1)

    def is_checked_by_worker(self, order: Order) -> bool:
        """Tell whether a worker checks a block that was read."""
        return bool(order.part_ends) and self._arrivals is not None

    def leave_to_worker(self, ended: EndedTransfer) -> None:
        """Tell of a block that is all there; `take_checked` returns it when a worker has checked it."""
        self._unchecked.append(ended)
        order = ended.transfer.order
        self._tell(order, len(order.part_ends))

    def take_checked(self) -> list[EndedTransfer]:
        """Take the blocks that a worker has checked, and those that none has come to in time."""
        if self._arrivals is None:
            return []
        late = time.monotonic() - self.patience_s
        waiting, self._unchecked = self._unchecked, deque()
        done = list[EndedTransfer]()
        for ended in waiting:
            order = ended.transfer.order
            how_far = self._arrivals.how_far(order.memory_slot, order.ticket)
            if how_far == WHOLE:
                done.append(ended._replace(is_right=True))
            elif how_far == DOUBTED or ended.at_s < late:
                done.append(ended)
            else:
                self._unchecked.append(ended)
        return done

    def drop_unchecked(self) -> list[Order]:
        """Let go of what is not checked; returns its orders."""
        waiting, self._unchecked = self._unchecked, deque()
        return [ended.transfer.order for ended in waiting]

    def end(self, order: Order, error: Exception | None) -> None:
        """Tell what became of an order that is read in parts."""
        self._tell(order, FAILED if error else WHOLE)

    def _tell(self, order: Order, parts: int) -> None:
        if self._arrivals is not None:
            self._arrivals.tell(order.memory_slot, order.ticket, parts)


class Outbox(EventQueue[Event]):
    """Events of the disk's thread; the workers hear of reads in parts."""

    def __init__(self, partial_reads: PartialReads, news: threading.Event | None = None) -> None:
        super().__init__(news)
        self._partial_reads = partial_reads

    def end(self, order: Order, error: Exception | None, ended: EndedTransfer | None = None) -> None:
        """Tell that an order has ended, with which transfer if the disk was asked; nobody is woken."""
        seconds, at_s = (ended.completion.seconds, ended.at_s) if ended else (0.0, time.monotonic())
        self.add(Ended(order, seconds, at_s, error))
        if order.part_ends:  # last: who waits for it finds that the index's owner knows
            self._partial_reads.end(order, error)

    def overdue(self, order: Order, error: Exception) -> None:
        """Tell that an order is taken for failed, while the disk still has its memory."""
        self.tell(Overdue(order))
        if order.part_ends:
            self._partial_reads.end(order, error)
