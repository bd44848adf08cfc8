"""What the disk's thread has to say: to the owner of the index, and to the workers that wait for blocks."""

import threading
import time
from collections import deque

from kvtier_connector.core.disk.transfers.messages import Ended, Event, Order, Overdue
from kvtier_connector.core.disk.transfers.partial_reads import EndedTransfer, PartialReads


class Outbox:
    """Events, until the owner of the index has taken note of them.

    Args:
        partial_reads: tells the workers.
    """

    def __init__(self, partial_reads: PartialReads) -> None:
        self._partial_reads = partial_reads
        self._events = deque[Event]()
        self._taken = list[Event]()
        self._news = threading.Event()

    # ---- for the owner of the index ----

    def take(self) -> list[Event]:
        """Return what has happened since the last call; all of that call's has been taken note of."""
        self._news.clear()
        self._taken = found = list[Event]()
        while self._events:
            found.append(self._events[0])  # before it leaves there: `unacknowledged` always sees it
            self._events.popleft()
        return found

    def acknowledge(self) -> None:
        """Say that all that was taken has been taken note of."""
        self._taken = []

    def wait(self, timeout_s: float) -> bool:
        """Return when there is news, or after the timeout; tells which."""
        return self._news.wait(timeout_s)

    # ---- for the disk's thread ----

    def __len__(self) -> int:
        return len(self._events)

    def unacknowledged(self) -> list[Event]:
        """Return the events that the owner may not have taken note of; some may be there twice."""
        later = self._events.copy()  # first: what is taken meanwhile is then in both
        return [*self._taken, *later]

    def tell(self, event: Event) -> None:
        """Add an event, and wake who waits."""
        self._events.append(event)
        self._news.set()

    def wake(self) -> None:
        """Wake who waits for news."""
        self._news.set()

    def end(self, order: Order, error: Exception | None, ended: EndedTransfer | None = None) -> None:
        """Tell that an order has ended; nobody is woken.

        Args:
            order: which.
            error: why it failed, or None.
            ended: the transfer with which it ended; None if the disk was not asked.
        """
        seconds, at_s = (ended.completion.seconds, ended.at_s) if ended else (0.0, time.monotonic())
        self._events.append(Ended(order, seconds, at_s, error))
        if order.part_ends:  # last: who waits for it finds that the index's owner knows
            self._partial_reads.end(order, error)

    def overdue(self, order: Order, error: Exception) -> None:
        """Tell that an order is taken for failed, while the disk still has its memory."""
        self.tell(Overdue(order))
        if order.part_ends:
            self._partial_reads.end(order, error)
