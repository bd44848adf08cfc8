"""Address space for the index: reserved once, used page by page, so that growing never copies."""

import contextlib
import mmap
import secrets
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kvtier_common.kernel import memory_limit_bytes, physical_bytes
from kvtier_scorer.index.layout import (
    ALL_PAGES,
    FREE_PAGE,
    FRESH_PAGE,
    NONE,
    PAGE_BITS,
    PAGE_BYTES,
    POOL_FIELDS,
    SALT,
)

_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
"""Linux's value on all that numba runs on; the module has the name from Python 3.13 on."""
_MOST_PAGES = NONE >> PAGE_BITS
"""Links are 32 bits wide; the page that would contain NONE is left out."""


def reserve_slots(limit_bytes: int | None) -> NDArray[np.uint32]:
    """Address space for as many slots as this process may have memory for, or as fit `limit_bytes`.

    It counts as memory only where it has been written to. Where the system grants no more (a strict
    overcommit policy or a limit of the process), half is asked for, and so on.

    Raises:
        OSError: Not even one page of slots is granted.
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
