"""Which key is due next: each is at most once in the queue and never worked on twice at a time."""

import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from kvtier_common.backoff import Backoff
from kvtier_operator.reconcile.settings.timings import RETRY

KeyT = TypeVar("KeyT", bound=Hashable)
_SPARE: Final = 64
"""Entries of keys that moved forward: each time one may leave an entry that is due in ten minutes."""


@dataclass(slots=True)
class WorkQueue(Generic[KeyT]):
    """Keys with the time at which they are due; time is passed in, in seconds of any one clock.

    A key added again keeps its earlier time. One added while it is being worked on comes back after that.
    Of those that are due, each group has its turn, however many keys another one has.

    Attributes:
        group_of: Group whose turn a key takes; by default all keys are one group.
        retry: Waits after failures in a row.
    """

    group_of: Callable[[KeyT], Hashable] = lambda _: None
    retry: Backoff = RETRY
    _later: dict[KeyT, float] = field(default_factory=dict)
    _heap: list[tuple[float, int, KeyT]] = field(default_factory=list)
    _ready: dict[Hashable, dict[KeyT, float]] = field(default_factory=dict)
    """What is due, by group: the groups in the order of their turns, keys in that of their times."""
    _working: dict[KeyT, float | None] = field(default_factory=dict)
    _failures: dict[KeyT, int] = field(default_factory=dict)
    _added: int = 0

    def __len__(self) -> int:
        return len(self._later) + sum(map(len, self._ready.values()))

    def add(self, key: KeyT, due: float) -> None:
        """Puts a key in, due at a time."""
        if key in self._working:
            again = self._working[key]
            self._working[key] = due if again is None else min(again, due)
            return
        if self._later.get(key, due + 1) <= due or key in self._ready.get(self.group_of(key), ()):
            return
        self._later[key] = due
        self._added += 1
        heapq.heappush(self._heap, (due, self._added, key))
        if len(self._heap) > 2 * len(self._later) + _SPARE:
            self._heap = [each for each in self._heap if self._later.get(each[2]) == each[0]]
            heapq.heapify(self._heap)

    def take(self, now: float) -> KeyT | None:
        """Takes out the key that has been due for longest, of the group whose turn it is, or None."""
        while (due := self._next_later()) is not None and due <= now:
            _, _, key = heapq.heappop(self._heap)
            self._ready.setdefault(self.group_of(key), {})[key] = self._later.pop(key)
        if not self._ready:
            return None
        group = next(iter(self._ready))
        keys = self._ready.pop(group)
        key = next(iter(keys))
        del keys[key]
        if keys:
            self._ready[group] = keys  # behind the others
        self._working[key] = None
        return key

    def next_due(self) -> float | None:
        """When the next key is due."""
        for keys in self._ready.values():
            return next(iter(keys.values()))
        return self._next_later()

    def failures(self, key: KeyT) -> int:
        """Failures in a row of the work on a key."""
        return self._failures.get(key, 0)

    def done(self, key: KeyT) -> None:
        """The work on a key ended well."""
        self._failures.pop(key, None)
        self._finish(key)

    def failed(self, key: KeyT, now: float, *, least_s: float = 0.0) -> None:
        """The work on a key failed: it comes back, later with every failure in a row."""
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        self._finish(key, now + max(least_s, self.retry.delay_s(failures)))

    def _finish(self, key: KeyT, again_at: float | None = None) -> None:
        added = self._working.pop(key, None)
        times = [time for time in (added, again_at) if time is not None]
        if times:
            self.add(key, min(times))

    def _next_later(self) -> float | None:
        """When the next key that was not yet due is; drops earlier entries of keys that moved forward."""
        while self._heap and self._later.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
