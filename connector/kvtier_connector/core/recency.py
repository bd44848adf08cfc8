"""Which slots may be evicted, oldest first: a doubly linked list held in flat arrays.

Every operation takes a whole batch of slots. Each slot carries the sequence number of its last append, and
the list is always sorted by it: sorting a batch by that number makes neighbours adjacent, so that whole runs
are unlinked at once, however many slots they have.
"""

import numpy as np

from kvtier_connector.core.keytable import Slots

_UNLINKED = -1


class RecencyList:
    """Slots 0..capacity-1 from least to most recently used; a slot is in the list at most once."""

    def __init__(self, capacity: int) -> None:
        self._end = capacity  # the sentinel: follows the newest, precedes the oldest
        self._newer = np.full(capacity + 1, _UNLINKED, np.int32)
        self._older = np.full(capacity + 1, _UNLINKED, np.int32)
        self._sequence = np.full(capacity, 0, np.int64)
        self._next_sequence = 0
        self._newer_view = self._newer.data
        self.size = 0
        self.clear()

    def clear(self) -> None:
        """Empty the list."""
        self._newer.fill(_UNLINKED)
        self._newer[self._end] = self._older[self._end] = self._end
        self.size = 0

    def holds(self, slots: Slots) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Tell for each slot whether it is in the list."""
        held: np.ndarray[tuple[int], np.dtype[np.bool_]] = self._newer[slots] != _UNLINKED
        return held

    def rank(self, slots: Slots) -> None:
        """Number slots that are not in the list, first = oldest, for a later `append_ranked`."""
        self._sequence[slots] = np.arange(self._next_sequence, self._next_sequence + len(slots))
        self._next_sequence += len(slots)

    def append(self, slots: Slots) -> None:
        """Add slots that are not in the list as the newest, the last of them newest of all."""
        if not len(slots):
            return
        self.rank(slots)
        chain = np.empty(len(slots) + 2, np.int32)
        chain[0], chain[1:-1], chain[-1] = self._older[self._end], slots, self._end
        self._newer[chain[:-1]] = chain[1:]
        self._older[chain[1:]] = chain[:-1]
        self.size += len(slots)

    def append_ranked(self, slots: Slots) -> None:
        """Add slots in the order that `rank` gave them, whatever order they come in."""
        self.append(slots[np.argsort(self._sequence[slots])])

    def remove(self, slots: Slots) -> None:
        """Unlink slots that are in the list."""
        if not len(slots):
            return
        slots = slots[np.argsort(self._sequence[slots])]
        newer, older = self._newer[slots], self._older[slots]
        breaks = newer[:-1] != slots[1:]
        left = older[np.concatenate(([True], breaks))]
        right = newer[np.concatenate((breaks, [True]))]
        self._newer[left] = right
        self._older[right] = left
        self._newer[slots] = _UNLINKED
        self.size -= len(slots)

    def remove_oldest(self, slots: Slots) -> None:
        """Unlink what `oldest` returned, or the first of it, with nothing changed in between."""
        if not len(slots):
            return
        following = self._newer[slots[-1]]
        self._newer[self._end], self._older[following] = following, self._end
        self._newer[slots] = _UNLINKED
        self.size -= len(slots)

    def oldest(self, count: int) -> Slots:
        """Return up to `count` slots, oldest first, leaving them in the list."""
        newer, end = self._newer_view, self._end
        found: list[int] = []
        slot = newer[end]
        for _ in range(count):
            if slot == end:
                break
            found.append(slot)
            slot = newer[slot]
        return np.array(found, np.int32)
