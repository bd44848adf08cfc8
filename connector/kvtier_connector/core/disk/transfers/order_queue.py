"""What waits for the disk, and which of it one transfer moves together."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from kvtier_connector.core.disk.files.segments import Segments
from kvtier_connector.core.disk.transfers.in_flight import Transfer
from kvtier_connector.core.disk.transfers.messages import Order

_MOST_PIECES: Final = 1024
"""Of a transfer's memory: IOV_MAX of readv(2)."""


class OrderQueue:
    """Orders that wait for the disk.

    Attributes:
        reads: in their order.
        writes: likewise.
        continued: what an earlier transfer has left to do: a block's next part, or each of several blocks.
    """

    def __init__(self) -> None:
        self.reads = deque[Order]()
        self.writes = deque[Order]()
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
    """Take the first order, and those behind it that one transfer can move with it.

    Args:
        waiting: orders of one direction, not empty.
        segments: where they lie.
        most_bytes: of a transfer of more than one block.
    """
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
