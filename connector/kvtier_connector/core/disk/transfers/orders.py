"""Orders that wait for the disk, and the transfers under way: for which orders each is."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kvtier_connector.core.disk.files.segments import Segments
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.io.engine import BlockIO
from kvtier_connector.core.disk.transfers.messages import Order

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
