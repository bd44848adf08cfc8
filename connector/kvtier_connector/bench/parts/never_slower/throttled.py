"""A disk of any speed: real transfers, which end no sooner than they would on it."""

import heapq
import threading
import time
from collections.abc import Sequence
from itertools import count
from typing import Final

from kvtier_connector.core.disk.io.engine import BlockIO, Completion, IOEngine

_LOOK_S: Final = 0.0002
"""How often it is looked for what the engine within has done; it is faster than any disk here."""


class ThrottledEngine:
    """An IOEngine around a real one, one transfer after another at so many bytes a second.

    Args:
        within: does the work.
        bytes_per_s: of the disk, reads and writes together.
    """

    def __init__(self, within: IOEngine, bytes_per_s: float) -> None:
        self.name = f"throttled {within.name}"
        self.depth = within.depth
        self.joined_bytes = within.joined_bytes
        self._within = within
        self._bytes_per_s = bytes_per_s
        self._free_at_s = 0.0
        self._due_s = dict[int, float]()
        self._done = list[tuple[float, int, Completion]]()
        self._number = count()
        self._woken = threading.Event()
        self.is_throttled = True
        """Whether it is slow; the last writes of an engine that ends need not be waited for."""

    def submit(self, ios: Sequence[BlockIO]) -> None:
        """Take transfers on; each has its end in the disk's queue."""
        for io in ios:
            size_bytes = sum(part.nbytes for part in io.memory)
            self._free_at_s = max(self._free_at_s, time.monotonic()) + size_bytes / self._bytes_per_s
            self._due_s[io.tag] = self._free_at_s
        self._within.submit(ios)

    def take_completions(self, timeout_s: float) -> list[Completion]:
        """Return what has ended on the disk."""
        until_s = time.monotonic() + timeout_s
        while True:
            for each in self._within.take_completions(0.0):
                heapq.heappush(self._done, (self._due_s[each.io.tag], next(self._number), each))
            now_s = time.monotonic()
            found = list[Completion]()
            while self._done and (self._done[0][0] <= now_s or not self.is_throttled):
                found.append(heapq.heappop(self._done)[2])
                del self._due_s[found[-1].io.tag]
            if found or self._woken.is_set() or now_s >= until_s:
                self._woken.clear()
                return found
            next_s = self._done[0][0] if self._done else until_s
            if self._within.in_flight:
                next_s = now_s + _LOOK_S
            self._woken.wait(max(0.0, min(until_s, next_s) - now_s))

    def wake(self) -> None:
        """Make `take_completions` return."""
        self._woken.set()

    def overdue(self, limit_s: float) -> list[BlockIO]:
        """Return nothing: a slow disk is what is measured."""
        del limit_s
        return []

    @property
    def in_flight(self) -> int:
        """Number of transfers that have not ended on the disk."""
        return len(self._due_s)

    def close(self) -> None:
        """Close the engine within."""
        self._within.close()
