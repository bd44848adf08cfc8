"""Events of the thread that moves blocks, until the owner of the index has taken note of them."""

import threading
from collections import deque
from typing import Generic, TypeVar

EventT = TypeVar("EventT")


class EventQueue(Generic[EventT]):
    """One thread tells, one takes. Several queues may wake the same taker by the same `news`."""

    def __init__(self, news: threading.Event | None = None) -> None:
        self._events = deque[EventT]()
        self._taken = list[EventT]()
        self._news = news or threading.Event()

    # ---- for the owner of the index ----

    def take(self) -> list[EventT]:
        """Return what has happened since the last call; all of that call's has been taken note of."""
        self._taken = events = list[EventT]()
        while self._events:
            events.append(self._events[0])  # before it leaves there: `unacknowledged_events` always sees it
            self._events.popleft()
        return events

    def acknowledge(self) -> None:
        """Say that all that was taken has been taken note of."""
        self._taken = []

    def wait(self, timeout_s: float) -> bool:
        """Return when there is news, or after the timeout; tells which.

        Take from every queue that shares the news after it. It ends here and not in `take`, so that one
        queue's turn does not hide what another was told meanwhile.
        """
        is_news = self._news.wait(timeout_s)
        self._news.clear()
        return is_news

    # ---- for the thread that moves blocks ----

    def __len__(self) -> int:
        return len(self._events)

    def unacknowledged_events(self) -> list[EventT]:
        """Return the events that the owner may not have taken note of; some may be there twice."""
        later = self._events.copy()  # first: what is taken meanwhile is then in both
        return [*self._taken, *later]

    def add(self, event: EventT) -> None:
        """Add an event; nobody is woken."""
        self._events.append(event)

    def tell(self, event: EventT) -> None:
        """Add an event, and wake who waits."""
        self.add(event)
        self.wake()

    def wake(self) -> None:
        """Wake who waits for news."""
        self._news.set()
