"""The kinds of pages that memory can be on, and what this machine has of each."""

import ctypes
import mmap
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from kvtier_connector.config import GIB, MIB
from kvtier_connector.core.allocation import allocated
from kvtier_connector.core.memory import format_bytes
from kvtier_connector.errors import RegionError

SMALL_PAGE_BYTES: Final = mmap.PAGESIZE
_HUGETLB_FLAG_SHIFT: Final = 26
"""MFD_HUGE_SHIFT of linux/memfd.h: log2 of the page size goes into the flags from this bit."""
_MADV_POPULATE_WRITE: Final = 23
"""linux/mman.h, Linux 5.14: faults pages in and answers an error where a plain touch would raise SIGBUS."""
_POPULATE_PIECE_BYTES: Final = 256 * MIB
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_MODES: Final = Path("/sys/kernel/mm/transparent_hugepage")
_POOLS: Final = Path("/sys/kernel/mm/hugepages")


def format_pages(page_bytes: int) -> str:
    """Return a page size for people, such as 2 MiB."""
    return f"{page_bytes // GIB} GiB" if page_bytes >= GIB else f"{page_bytes // MIB} MiB"


def hugetlb_memory(total_bytes: int, page_bytes: int) -> int:
    """Return a memfd whose `total_bytes` are already taken from the huge page pool.

    Raises:
        OSError: the pool or the control group has not enough.
    """
    flags = os.MFD_CLOEXEC | os.MFD_HUGETLB | (page_bytes.bit_length() - 1) << _HUGETLB_FLAG_SHIFT
    return allocated(os.memfd_create("kvtier", flags), total_bytes)


def pool_shortage(total_bytes: int, page_bytes: int, error: OSError) -> str:
    """Return why `hugetlb_memory` failed, with the numbers."""
    needed = -(-total_bytes // page_bytes)
    try:
        free = int((_POOLS / f"hugepages-{page_bytes // 1024}kB/free_hugepages").read_text())
    except OSError:
        return "this kernel has no pages of this size"
    if free >= needed:
        return (
            f"{needed} pages refused although {free} are free ({os.strerror(error.errno or 0)}), "
            "so the control group's hugetlb limit is lower"
        )
    return f"{free} of {needed} pages free"


def transparent_obstacle(*, shared: bool) -> str:
    """Return why the kernel would not give transparent huge pages, or nothing if it would.

    Args:
        shared: for a memfd; otherwise for anonymous memory.
    """
    name = "shmem_enabled" if shared else "enabled"
    try:
        modes = (_MODES / name).read_text()
    except OSError:
        return "transparent huge pages: not in this kernel"
    mode = modes[modes.index("[") + 1 : modes.index("]")]
    return f"transparent huge pages: {_MODES / name} is {mode}" if mode in ("never", "deny") else ""


def huge_bytes_in(address: int, size_bytes: int) -> int:
    """Return how many bytes of a range of this process are on transparent huge pages."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *values = line.split()
        if not name.endswith(":"):
            first, last = (int(bound, 16) for bound in name.split("-"))
            inside = first < address + size_bytes and address < last
        elif inside and name in ("AnonHugePages:", "ShmemPmdMapped:"):
            found += int(values[0]) * 1024
    return min(found, size_bytes)


def populate(address: int, size_bytes: int) -> None:
    """Fault all pages of a range in, on as many threads as this process may use CPUs.

    Raises:
        RegionError: the kernel has no memory for it.
    """

    def populate_from(start: int) -> None:
        size = min(_POPULATE_PIECE_BYTES, address + size_bytes - start)
        if _LIBC.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _MADV_POPULATE_WRITE) != 0:
            raise RegionError(
                f"cpu_capacity_bytes: the kernel refused memory for a slice of {format_bytes(size_bytes)}: "
                f"{os.strerror(ctypes.get_errno())}"
            )

    with ThreadPoolExecutor(len(os.sched_getaffinity(0)), "kvtier-populate") as pool:
        for _ in pool.map(populate_from, range(address, address + size_bytes, _POPULATE_PIECE_BYTES)):
            pass
