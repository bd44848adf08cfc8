"""Where each holder's pages are: a run of page numbers for each holder in one array."""

import numpy as np

from kvtier_scorer.index.layout import DIRECTORY, PAGE_SLOTS, PAGES, IndexArrays


class PageDirectory:
    """Gives holders room for page numbers: 8 bytes for each 4,096 entries that a holder may have.

    Rooms are powers of two; one that is given back serves the next holder of that size.
    """

    def __init__(self) -> None:
        self._end = 0
        self._free: dict[int, list[int]] = {}

    def reserve(self, memory: IndexArrays, holder: int, entries: int) -> IndexArrays:
        """Make room for `entries`, keeping the pages that the holder has; returns the memory to use now."""
        room = _room(entries)
        row = memory.holders[holder]
        before, had = int(row[DIRECTORY]), int(row[PAGES])
        if room <= had:
            return memory
        free = self._free.get(room)
        place = free.pop() if free else self._end
        if place == self._end:
            self._end += room
        directory = memory.directory
        if self._end > len(directory):
            directory = np.concatenate((directory, np.zeros(max(self._end, len(directory)), np.int64)))
        directory[place : place + had] = directory[before : before + had]
        self._release(before, had)
        row[DIRECTORY], row[PAGES] = place, room
        return memory._replace(directory=directory)

    def release(self, memory: IndexArrays, holder: int) -> None:
        """Take the room of a holder that has no pages."""
        row = memory.holders[holder]
        self._release(int(row[DIRECTORY]), int(row[PAGES]))
        row[DIRECTORY] = row[PAGES] = 0

    def _release(self, place: int, room: int) -> None:
        if room:
            self._free.setdefault(room, []).append(place)


def _room(entries: int) -> int:
    pages = -(-entries // PAGE_SLOTS)
    return 1 << (pages - 1).bit_length() if pages else 0
