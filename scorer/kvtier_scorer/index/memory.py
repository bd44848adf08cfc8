"""Memory of the index: address space, reserved once, used page by page, and where each holder's pages are."""

import contextlib
import mmap
import secrets
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kvtier_common.kernel import memory_limit_bytes, physical_bytes
from kvtier_scorer.index.layout import (
    ALL_PAGES,
    DIRECTORY,
    FREE_PAGE,
    FRESH_PAGE,
    NONE,
    PAGE_BITS,
    PAGE_BYTES,
    PAGE_SLOTS,
    PAGES,
    POOL_FIELDS,
    SALT,
    IndexArrays,
)

_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
"""Linux's value on all that numba runs on; the module has the name from Python 3.13 on."""
_MOST_PAGES = NONE >> PAGE_BITS  # links are 32 bits wide; the page that would contain NONE is left out


def reserve_slots(limit_bytes: int | None) -> NDArray[np.uint32]:
    """Address space for as many slots as this process may have memory for, or as fit `limit_bytes`.

    It counts as memory only where it has been written to. Where the system grants no more (a strict
    overcommit policy or a limit of the process), half is asked for, and so on.
    """
    if limit_bytes is None:
        limit_bytes = allowed_bytes()
    pages = max(1, min(limit_bytes // PAGE_BYTES, _MOST_PAGES))
    while True:
        try:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
            space = mmap.mmap(-1, pages * PAGE_BYTES, flags)
        except OSError:
            if pages == 1:
                raise
            pages //= 2
        else:
            _ask_for_huge_pages(space)
            return np.frombuffer(space, np.uint32)


def allowed_bytes(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """What an index may grow to: the machine's memory, or half of what a control group leaves this process.

    The other half is the rest of the process's: an index that took all of it would have the kernel end the
    picker, and a pod that reports blocks without end would be enough for that.
    """
    limit = memory_limit_bytes(proc, cgroup)
    physical = physical_bytes()
    return physical if limit is None else min(physical, limit // 2)


def _ask_for_huge_pages(space: mmap.mmap) -> None:
    """Reads are random: let each cost a miss of the cache, and not a walk through page tables too."""
    with contextlib.suppress(OSError):  # a kernel without them
        space.madvise(mmap.MADV_HUGEPAGE)


def new_pool(words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The pool of all pages of `words`, none of them used."""
    pool = np.zeros(POOL_FIELDS, np.int64)
    pool[FRESH_PAGE] = 0
    pool[FREE_PAGE] = NONE
    pool[ALL_PAGES] = words.nbytes // PAGE_BYTES
    pool[SALT] = secrets.randbits(63) | 1
    return pool


class PageDirectory:
    """Gives holders places for page numbers: 8 bytes for each 4,096 entries that a holder may have.

    Their numbers are powers of two; what is given back serves the next holder of that size.
    """

    def __init__(self) -> None:
        self._end = 0
        self._free: dict[int, list[int]] = {}

    def reserve(self, memory: IndexArrays, holder: int, entries: int) -> IndexArrays:
        """Reserve places for `entries`, with the pages that there are; returns the memory to use now."""
        places = _places(entries)
        row = memory.holders[holder]
        before, had = int(row[DIRECTORY]), int(row[PAGES])
        if places <= had:
            return memory
        free = self._free.get(places)
        place = free.pop() if free else self._end
        if place == self._end:
            self._end += places
        directory = memory.directory
        if self._end > len(directory):
            directory = np.concatenate((directory, np.zeros(max(self._end, len(directory)), np.int64)))
        directory[place : place + had] = directory[before : before + had]
        self._release(before, had)
        row[DIRECTORY], row[PAGES] = place, places
        return memory._replace(directory=directory)

    def release(self, memory: IndexArrays, holder: int) -> None:
        """Take back the places of a holder that has no pages."""
        row = memory.holders[holder]
        self._release(int(row[DIRECTORY]), int(row[PAGES]))
        row[DIRECTORY] = row[PAGES] = 0

    def _release(self, place: int, places: int) -> None:
        if places:
            self._free.setdefault(places, []).append(place)


def _places(entries: int) -> int:
    pages = -(-entries // PAGE_SLOTS)
    return 1 << (pages - 1).bit_length() if pages else 0
