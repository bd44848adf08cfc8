"""The tier's memory: one region for all ranks of an engine, on the largest pages that can be had.

The region is a memfd (memfd_create(2)), or plain anonymous memory where one process uses it alone. Neither
has a name in any file system: nothing is left in /dev/shm when the engine dies, and a small /dev/shm is no
limit.
The ladder is hugetlbfs -> transparent huge pages -> 4 KiB.
"""

import ctypes
import mmap
import os
import time
from dataclasses import dataclass, replace
from typing import Final, Self

from kvtier_connector.config import Policy
from kvtier_connector.core import pages
from kvtier_connector.core.memory import format_bytes, tightest_bound
from kvtier_connector.errors import RegionError

SMALL: Final = "4 KiB pages"
TRANSPARENT: Final = "transparent huge pages"
_NEARLY_ALL: Final = 0.95


@dataclass(frozen=True, slots=True)
class RegionRequest:
    """What is asked of the region.

    Args:
        slices: number of slices: one for each rank, or one for all where the ranks hold the same bytes (MLA).
        slice_bytes: size of a slice before rounding to pages.
        shared: more than one process uses the region.
        hugepages: policy for hugetlbfs pages.
        hugepage_bytes: their size.
    """

    slices: int
    slice_bytes: int
    shared: bool
    hugepages: Policy
    hugepage_bytes: int

    def rounded(self) -> Self:
        """Return the request with each slice rounded up to whole pages of the kind asked for."""
        page = pages.SMALL_PAGE_BYTES if self.hugepages is Policy.OFF else self.hugepage_bytes
        return replace(self, slice_bytes=-(-self.slice_bytes // page) * page)


@dataclass(frozen=True, slots=True)
class RegionReport:
    """What was asked, what was got, and why.

    Args:
        total_bytes: size of the region, all slices.
        asked: the kind of pages asked for, for people.
        got: the kind that was got.
        why: for each step down the ladder, why; empty when there was none.
        seconds: time it took.
    """

    total_bytes: int
    asked: str
    got: str
    why: str
    seconds: float

    @property
    def on_hugetlbfs(self) -> bool:
        """Whether the pages come from the huge page pool; such pages are never swapped."""
        return self.got.startswith("hugetlbfs")

    def __str__(self) -> str:
        reason = f": {self.why}" if self.why else ""
        return f"region {format_bytes(self.total_bytes)} on {self.got} (asked {self.asked}{reason})"


@dataclass(frozen=True, slots=True)
class RegionHandle:
    """How ranks reach a region: plain data that can be sent to them.

    Args:
        path: the memfd's path under /proc of its creator; empty for memory of one process.
        slice_bytes: size of a slice.
        report: what the creator got.
    """

    path: str
    slice_bytes: int
    report: RegionReport


class Slice:
    """One rank's part of the region, mapped and backed by memory.

    Args:
        memory: the mapping.
        report: what the region is made of.
    """

    def __init__(self, memory: mmap.mmap, report: RegionReport) -> None:
        self._memory = memory
        self.size_bytes = len(memory)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.report = report


def create(request: RegionRequest) -> tuple[RegionHandle, int]:
    """Make the region that `attach` then maps.

    Returns:
        The handle, and a file descriptor that keeps the memory alive (-1 for memory of one process): close it
        when every rank has attached.

    Raises:
        RegionError: Require cannot be met, or there is not enough memory.
    """
    start = time.monotonic()
    request = request.rounded()
    total = request.slices * request.slice_bytes
    descriptor = -1
    asked = got = SMALL
    why = []
    if request.hugepages is not Policy.OFF:
        asked = f"hugetlbfs {pages.format_pages(request.hugepage_bytes)}"
        try:
            descriptor = pages.hugetlb_memory(total, request.hugepage_bytes)
            got = asked
        except OSError as error:
            why.append(pages.pool_shortage(total, request.hugepage_bytes, error))
    if why and request.hugepages is Policy.REQUIRE:
        raise RegionError(
            f"hugepages: Require, but {asked}: {why[0]}; reserve them (vm.nr_hugepages, and in a pod the "
            "hugepages resource) or set Prefer"
        )
    if descriptor < 0:
        _check_room(total)
        if request.shared:
            descriptor = os.memfd_create("kvtier", os.MFD_CLOEXEC)
            os.ftruncate(descriptor, total)
        if request.hugepages is not Policy.OFF:
            obstacle = pages.transparent_obstacle(shared=request.shared)
            got = SMALL if obstacle else TRANSPARENT
            why += [obstacle] if obstacle else []
    report = RegionReport(total, asked, got, "; ".join(why), time.monotonic() - start)
    path = f"/proc/{os.getpid()}/fd/{descriptor}" if descriptor >= 0 else ""
    return RegionHandle(path, request.slice_bytes, report), descriptor


def attach(handle: RegionHandle, number: int) -> Slice:
    """Map slice `number` of the region and back it with memory, by default on the caller's own NUMA node.

    Raises:
        RegionError: the memory cannot be had.
    """
    start = time.monotonic()
    if handle.path:
        descriptor = os.open(handle.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            memory = mmap.mmap(descriptor, handle.slice_bytes, offset=number * handle.slice_bytes)
        finally:
            os.close(descriptor)
    else:
        memory = mmap.mmap(-1, handle.slice_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapped = Slice(memory, handle.report)
    if handle.report.got == TRANSPARENT:
        memory.madvise(mmap.MADV_HUGEPAGE)
    pages.populate(mapped.address, mapped.size_bytes)
    if handle.report.got == TRANSPARENT:
        mapped.report = _verified(mapped)
    mapped.report = replace(mapped.report, seconds=handle.report.seconds + time.monotonic() - start)
    return mapped


def _check_room(total: int) -> None:
    bound = tightest_bound()
    if total > bound.available_bytes:
        raise RegionError(
            f"cpu_capacity_bytes: the region needs {format_bytes(total)}, but {bound.source} leaves "
            f"{format_bytes(max(0, bound.available_bytes))}; lower it or give the engine more memory"
        )


def _verified(mapped: Slice) -> RegionReport:
    """Return the report with what the kernel really gave: transparent huge pages are never promised."""
    share = pages.huge_bytes_in(mapped.address, mapped.size_bytes) / mapped.size_bytes
    if share > _NEARLY_ALL:
        return mapped.report
    got = f"{share:.0%} {TRANSPARENT}" if share else SMALL
    why = "; ".join(filter(None, (mapped.report.why, "transparent huge pages: no more to be had")))
    return replace(mapped.report, got=got, why=why)
