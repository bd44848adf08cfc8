"""What the disk tier's thread has handed over: for which order each transfer is, and for which part of it."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from kvtier_connector.core.disk.io.engine import BlockIO
from kvtier_connector.core.disk.orders import Order
from kvtier_connector.core.disk.store import Store


class Flight(NamedTuple):
    """A transfer under way.

    Args:
        order: for which it is.
        checksum: of the whole block.
        part: which part of a read, from 0.
    """

    order: Order
    checksum: int
    part: int = 0

    @property
    def is_last(self) -> bool:
        """Whether the order ends with it."""
        return self.part + 1 >= len(self.order.ends)


class Flights:
    """The transfers under way, by their tags. An order has one at a time."""

    def __init__(self) -> None:
        self._flying = dict[int, Flight]()
        self._next_tag = 0
        self.reads = 0
        """How many of them are reads."""

    def __len__(self) -> int:
        return len(self._flying)

    def orders(self) -> Iterator[Order]:
        """Yield the orders for which something is under way."""
        return (flight.order for flight in self._flying.values())

    def begin(self, store: Store, order: Order, checksum: int) -> BlockIO:
        """Return the transfer of a block, or of its first part if the order is to read that before."""
        return self._begin(store, Flight(order, checksum))

    def go_on(self, store: Store, before: Flight) -> BlockIO:
        """Return the transfer of the next part of a block."""
        return self._begin(store, before._replace(part=before.part + 1))

    def end(self, io: BlockIO) -> Flight:
        """Take a transfer off those under way."""
        flight = self._flying.pop(io.tag)
        self.reads -= not flight.order.write
        return flight

    def _begin(self, store: Store, flight: Flight) -> BlockIO:
        order, part = flight.order, flight.part
        place = store.segments.place(order.slot)
        parts, start = order.parts, 0
        if order.ends:
            (memory,) = parts
            start = order.ends[part - 1] if part else 0
            parts = (memory[start : None if flight.is_last else order.ends[part]],)
        tag = self._next_tag
        self._next_tag += 1
        self._flying[tag] = flight
        self.reads += not order.write
        return BlockIO(tag, order.write, place.descriptor, place.offset + start, parts)


def lots(ios: Iterator[BlockIO], first: int) -> Iterator[list[BlockIO]]:
    """Yield transfers in lots: the first of so many, each other one of twice as many as that before it.

    Args:
        ios: the transfers; made as they are taken.
        first: how many there are in the first lot.
    """
    many = first
    while lot := list(islice(ios, many)):
        yield lot
        many *= 2
