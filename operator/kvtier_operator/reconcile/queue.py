"""What to reconcile next: every key at most once in the queue and never twice at a time."""

import heapq
import random
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
_FIRST_S: Final = 0.2
_LONGEST_S: Final = 60.0


def backoff_s(failures: int, *, first_s: float = _FIRST_S, longest_s: float = _LONGEST_S) -> float:
    """Seconds to wait after so many failures in a row: doubling, a quarter of it random, a minute at most."""
    whole: float = min(longest_s, first_s * 2 ** min(failures - 1, 16))
    return whole * (1 - random.random() / 4)  # noqa: S311 - spreads load, no secret


@dataclass(slots=True)
class KeyedQueue(Generic[KeyT]):
    """Keys with the time at which they are due; time is passed in, in seconds of any one clock.

    A key added again keeps its earlier time. One added while it is being worked on comes back after that.
    """

    _due: dict[KeyT, float] = field(default_factory=dict)
    _heap: list[tuple[float, int, KeyT]] = field(default_factory=list)
    _working: dict[KeyT, float | None] = field(default_factory=dict)
    _failures: dict[KeyT, int] = field(default_factory=dict)
    _added: int = 0

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: KeyT, due: float) -> None:
        """Puts a key in, due at a time."""
        if key in self._working:
            again = self._working[key]
            self._working[key] = due if again is None else min(again, due)
            return
        if self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._added += 1
        heapq.heappush(self._heap, (due, self._added, key))

    def take(self, now: float) -> KeyT | None:
        """The key that is due for longest, now being worked on; None where none is."""
        self._drop_stale()
        if not self._heap or self._heap[0][0] > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._due[key]
        self._working[key] = None
        return key

    def next_due(self) -> float | None:
        """When the next key is due."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def failures(self, key: KeyT) -> int:
        """How often in a row the work on a key has failed."""
        return self._failures.get(key, 0)

    def done(self, key: KeyT) -> None:
        """The work on a key ended well."""
        self._failures.pop(key, None)
        self._finish(key)

    def failed(self, key: KeyT, now: float, *, least_s: float = 0.0) -> float:
        """The work on a key failed: it comes back, later with every failure in a row; returns the seconds."""
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        delay = max(least_s, backoff_s(failures))
        self._finish(key, now + delay)
        return delay

    def _finish(self, key: KeyT, again_at: float | None = None) -> None:
        added = self._working.pop(key, None)
        times = [time for time in (added, again_at) if time is not None]
        if times:
            self.add(key, min(times))

    def _drop_stale(self) -> None:
        """Drops earlier entries of keys that moved forward."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
