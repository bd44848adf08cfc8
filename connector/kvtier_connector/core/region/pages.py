"""The kinds of pages that memory can be on, what this machine has of each, and how they are taken."""

import ctypes
import errno
import mmap
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from math import gcd
from pathlib import Path
from typing import Final

from kvtier_connector.config import GIB, MIB
from kvtier_connector.core.machine import numa
from kvtier_connector.core.machine.memory import format_bytes, hugetlb_bound

SMALL_PAGE_BYTES: Final = mmap.PAGESIZE
_HUGETLB_FLAG_SHIFT: Final = 26
"""MFD_HUGE_SHIFT of linux/memfd.h: log2 of the page size goes into the flags from this bit."""
_MADV_POPULATE_WRITE: Final = 23
"""linux/mman.h, Linux 5.14: faults pages in and answers an error where a plain touch would raise SIGBUS."""
_POPULATE_PIECE_BYTES: Final = 64 * MIB
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_MODES: Final = Path("/sys/kernel/mm/transparent_hugepage")
_POOLS: Final = Path("/sys/kernel/mm/hugepages")
PIECE_BYTES: Final = 16 * MIB
"""A millisecond or two of a driver's page-locking, which a step may have to wait for while a tier grows."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of this process's memory that is to be backed."""

    address: int  # its beginning, on a page
    size_bytes: int  # its size, whole pages
    node: int | None  # the NUMA node that its pages should come from; None for the caller's own


def format_pages(page_bytes: int) -> str:
    """Return a page size for people, such as 2 MiB."""
    return f"{page_bytes // GIB} GiB" if page_bytes >= GIB else f"{page_bytes // MIB} MiB"


def reserved_hugetlb(total_bytes: int, page_bytes: int) -> tuple[int, mmap.mmap]:
    """Return a memfd of huge pages and a mapping of it; its pages are reserved in the pool, not yet taken.

    A reservation is answered at once and belongs to the file, not to the mapping. Taking the pages is
    `populate`'s, which does it on many threads; fallocate(2) takes the same pages on one, below the file's
    lock. Either tells of exhaustion with an error. Raises OSError: the pool has not enough, or the kernel no
    such pages.
    """
    flags = os.MFD_CLOEXEC | os.MFD_HUGETLB | (page_bytes.bit_length() - 1) << _HUGETLB_FLAG_SHIFT
    descriptor = os.memfd_create("kvtier", flags)
    try:
        os.ftruncate(descriptor, total_bytes)
        return descriptor, mmap.mmap(descriptor, total_bytes)
    except OSError:
        os.close(descriptor)
        raise


def pool_shortage(total_bytes: int, page_bytes: int, error: OSError) -> str:
    """Return why huge pages were refused, with the numbers: needed, free, and who allows fewer."""
    needed = -(-total_bytes // page_bytes)
    try:
        free = free_pages(page_bytes)
    except OSError:
        return "this kernel has no pages of this size"
    if free < needed:
        return f"{free} of {needed} pages free"
    bound = hugetlb_bound(page_bytes)
    if bound is None or bound.available_bytes >= total_bytes:
        reason = os.strerror(error.errno or 0)
    else:
        reason = f"{bound.source} leaves {max(0, bound.available_bytes) // page_bytes}"
    return f"{needed} pages refused although {free} are free: {reason}"


def free_pages(page_bytes: int) -> int:
    """Return how many huge pages of a size are free and not reserved; OSError if the kernel has none."""
    pool = _POOLS / f"hugepages-{page_bytes // 1024}kB"
    free, reserved = (int((pool / name).read_text()) for name in ("free_hugepages", "resv_hugepages"))
    return max(0, free - reserved)


def transparent_obstacle(*, shared: bool) -> str:
    """Return why the kernel would not give transparent huge pages, to a memfd if shared; or nothing."""
    name = "shmem_enabled" if shared else "enabled"
    try:
        modes = (_MODES / name).read_text()
    except OSError:
        return "transparent huge pages: not in this kernel"
    mode = modes[modes.index("[") + 1 : modes.index("]")]
    return f"transparent huge pages: {_MODES / name} is {mode}" if mode in ("never", "deny") else ""


def populate(
    ranges: Iterable[Range],  # of this process
    page_bytes: int,  # size of their pages
    *,
    # taken in one call, for which whoever else changes this process's memory waits
    at_once_bytes: int = _POPULATE_PIECE_BYTES,
) -> None:
    """Take all pages of some ranges, each on its range's NUMA node.

    Raises OSError: the kernel has no memory for it, or a control group allows no more. What was taken stays
    so.
    """
    pieces: defaultdict[int | None, list[tuple[int, int]]] = defaultdict(list)
    for part in ranges:
        pieces[part.node] += parts(part, max(at_once_bytes, page_bytes))
    with ExitStack() as pools:
        taken = []
        for node, of_node in pieces.items():
            cpus = (numa.cpus_of_node(node) if node is not None else None) or os.sched_getaffinity(0)
            count = min(len(cpus), len(of_node))
            pool = pools.enter_context(ThreadPoolExecutor(count, "kvtier-populate", partial(_stay_on, cpus)))
            taken += [pool.submit(populate_part, *piece) for piece in of_node]
        try:
            for piece in taken:
                piece.result()
        except OSError:
            for piece in taken:
                piece.cancel()
            raise


def refusal(error: OSError) -> str:
    """Return why `populate` failed, for people."""
    if error.errno == errno.EINVAL:
        return "this kernel is older than Linux 5.14 (MADV_POPULATE_WRITE)"
    return os.strerror(error.errno or 0)


def parts(part: Range, most_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield address and size of a range's parts of at most so many bytes, whole pages."""
    for offset in range(0, part.size_bytes, most_bytes):
        yield part.address + offset, min(most_bytes, part.size_bytes - offset)


def _stay_on(cpus: AbstractSet[int]) -> None:
    """Keep the calling thread on these CPUs; where the machine does not allow it, the report will say so."""
    with suppress(OSError):
        os.sched_setaffinity(0, cpus)


def stay_on_node(node: int | None) -> None:
    """Keep the calling thread on a node's CPUs, from which the pages that it takes come then."""
    if node is not None and (cpus := numa.cpus_of_node(node)):
        _stay_on(cpus)


def populate_part(address: int, size_bytes: int) -> None:
    """Take pages of this process in one call, on the node of the CPU that it runs on. Raises OSError."""
    if _LIBC.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size_bytes), _MADV_POPULATE_WRITE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{os.strerror(code)}: {format_bytes(size_bytes)} of memory")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece in which a slice of the region is taken and locked; none cuts a slot."""

    offset_bytes: int  # where it begins in the slice, on a page
    size_bytes: int  # its size, whole pages
    slots: int  # how many slots, from the slice's first, are whole with it and those before


def piece_slots(slot_bytes: int, most_bytes: int = PIECE_BYTES) -> int:
    """Return how many slots make a piece, which ends with a slot and a page; one slot may need more."""
    least = SMALL_PAGE_BYTES // gcd(slot_bytes, SMALL_PAGE_BYTES)
    return max(least, most_bytes // slot_bytes // least * least)


def pieces_within(pieces: Iterable[Piece], most_bytes: int) -> tuple[Piece, ...]:
    """Return the first pieces of a slice, as many as are not larger than so much together."""
    return tuple(piece for piece in pieces if piece.offset_bytes + piece.size_bytes <= most_bytes)


def pieces_of(slots: int, slot_bytes: int, most_bytes: int = PIECE_BYTES) -> Iterator[Piece]:
    """Yield the pieces of a slice; all but the last are of one size."""
    step = piece_slots(slot_bytes, most_bytes)
    for first in range(0, slots, step):
        last = min(first + step, slots)
        end_bytes = -(-last * slot_bytes // SMALL_PAGE_BYTES) * SMALL_PAGE_BYTES
        yield Piece(first * slot_bytes, end_bytes - first * slot_bytes, last)
