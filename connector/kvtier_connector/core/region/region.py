"""The tier's memory: one region for all ranks of an engine, on the largest pages that can be had.

The region is a memfd (memfd_create(2)), or plain anonymous memory where one process uses it alone. Neither
has a name in any file system: nothing is left in /dev/shm or in the pool of huge pages when the engine dies,
a small /dev/shm is no limit, and huge pages need no mount.
The ladder is hugetlbfs -> transparent huge pages -> 4 KiB. All memory is taken before it is used, at start or
piece by piece (growth.py): what is exhausted says so with an error, and never later with a SIGBUS.
"""

import ctypes
import mmap
import os
import time
from dataclasses import dataclass, replace

from typing_extensions import Self

from kvtier_connector.config import Policy
from kvtier_connector.core.machine.memory import format_bytes, tightest_bound
from kvtier_connector.core.region import pages
from kvtier_connector.core.region.report import SMALL, TRANSPARENT, RegionReport, bytes_on_nodes, range_state
from kvtier_connector.errors import RegionError


@dataclass(frozen=True, slots=True)
class RegionRequest:
    """What is asked of the region."""

    # number of slices: one for each rank, or one for all where the ranks hold the same bytes (MLA)
    slices: int
    slice_bytes: int  # size of a slice before rounding to pages
    shared: bool  # more than one process uses the region
    hugepages: Policy  # policy for hugetlbfs pages
    hugepage_bytes: int  # their size
    # the NUMA node that each slice should lie on, as many as slices: that of its rank's device
    # (numa.node_of_pci) or CPUs (numa.node_of_cpus). None, or none at all: the node of who takes the pages,
    # which is the rank itself except for hugetlbfs pages that `create` takes.
    nodes: tuple[int | None, ...] = ()
    grows: bool = False  # slices are taken piece by piece later; hugetlbfs pages are reserved until then
    may_be_short: bool = False  # who takes the pieces looks himself how much memory there is

    def round_up(self) -> Self:
        """Return the request with each slice rounded up to whole pages of the kind asked for."""
        page = pages.SMALL_PAGE_BYTES if self.hugepages is Policy.NEVER else self.hugepage_bytes
        return replace(self, slice_bytes=-(-self.slice_bytes // page) * page)

    def node(self, number: int) -> int | None:
        """Return the NUMA node that slice `number` should lie on."""
        return self.nodes[number] if self.nodes else None


@dataclass(frozen=True, slots=True)
class RegionHandle:
    """How ranks reach a region: plain data that can be sent to them."""

    path: str  # the memfd's path under /proc of its creator; empty for memory of one process
    slice_bytes: int  # size of a slice
    report: RegionReport  # what the creator got
    nodes: tuple[int | None, ...] = ()  # the NUMA node that each slice should lie on, or none at all


@dataclass(frozen=True, slots=True)
class RegionOffer:
    """The first worker's offer of the region to the scheduler's process."""

    region: RegionHandle  # the region
    # where the parts of a slot end for which a step can wait, in bytes; empty where it needs all
    part_ends: tuple[int, ...] = ()
    # path of the words in which the worker wants to be told what has come from disk; empty where it needs all
    arrivals: str = ""


class Slice:
    """One rank's part of the region, mapped."""

    def __init__(self, memory: mmap.mmap, report: RegionReport, node: int | None = None) -> None:
        self._memory = memory
        self.size_bytes = len(memory)
        self.address = _address(memory)
        self.report = report
        self.node = node

    def close(self) -> None:
        """Unmap it."""
        self._memory.close()

    def look(self, size_bytes: int, seconds: float) -> None:
        """Complete the report with what the kernel gave of the first bytes, in so many seconds more."""
        report = replace(self.report, seconds=self.report.seconds + seconds)
        if report.got == TRANSPARENT and size_bytes:
            report = report.with_transparent(range_state(self.address, size_bytes).huge_bytes / size_bytes)
        if self.node is not None:
            report = report.with_node(self.node, bytes_on_nodes(self.address, self.size_bytes))
        self.report = report


def create(request: RegionRequest) -> tuple[RegionHandle, int]:
    """Make the region that `attach` then maps. Raises RegionError: Require cannot be met, or memory is short.

    Returns the handle, and a file descriptor that keeps the memory alive (-1 for memory of one process):
    close it when every rank has attached, and whoever else opens the whole.
    """
    start = time.monotonic()
    request = request.round_up()
    total = request.slices * request.slice_bytes
    descriptor = -1
    asked = got = SMALL
    why = []
    if request.hugepages is not Policy.NEVER:
        asked = f"hugetlbfs {pages.format_pages(request.hugepage_bytes)}"
        try:
            descriptor = _on_hugetlbfs(request)
            got = asked
        except OSError as error:
            why.append(pages.pool_shortage(total, request.hugepage_bytes, error))
    if why and request.hugepages is Policy.REQUIRE:
        raise RegionError(
            f"hugepages: Require, but {asked}: {why[0]}; reserve them (vm.nr_hugepages, and in a pod the "
            "hugepages resource) or set Prefer"
        )
    if descriptor < 0:
        if not request.may_be_short:
            _check_memory(total)
        if request.shared:
            descriptor = os.memfd_create("kvtier", os.MFD_CLOEXEC)
            os.ftruncate(descriptor, total)
        if request.hugepages is not Policy.NEVER:
            obstacle = pages.transparent_obstacle(shared=request.shared)
            got = SMALL if obstacle else TRANSPARENT
            why += [obstacle] if obstacle else []
    report = RegionReport(total, asked, got, "; ".join(why), time.monotonic() - start)
    path = f"/proc/{os.getpid()}/fd/{descriptor}" if descriptor >= 0 else ""
    return RegionHandle(path, request.slice_bytes, report, request.nodes), descriptor


def attach(handle: RegionHandle, number: int) -> Slice:
    """Map slice `number` of the region and back it with memory, on its NUMA node or else on the caller's own.

    Raises RegionError: the memory cannot be had.
    """
    start = time.monotonic()
    held = map_slice(handle, number)
    try:
        # Where the pages are hugetlbfs pages they are there already, and this fills in the page table.
        pages.populate([pages.Range(held.address, held.size_bytes, held.node)], pages.SMALL_PAGE_BYTES)
    except OSError as error:
        held.close()
        raise RegionError(
            f"cpu_capacity_bytes: the kernel refused memory for a slice of "
            f"{format_bytes(handle.slice_bytes)}: {pages.refusal(error)}"
        ) from error
    held.look(held.size_bytes, time.monotonic() - start)
    return held


def map_slice(handle: RegionHandle, number: int) -> Slice:
    """Map slice `number`, of which nothing need be there yet. Raises RegionError: it cannot be reached."""
    if handle.path:
        memory = _map(handle.path, handle.slice_bytes, number * handle.slice_bytes)
    else:
        memory = _private(mmap.mmap(-1, handle.slice_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    if handle.report.got == TRANSPARENT:
        memory.madvise(mmap.MADV_HUGEPAGE)
    return Slice(memory, handle.report, handle.nodes[number] if handle.nodes else None)


def nothing(why: str) -> Slice:
    """Return a slice in which there is no slot, for a rank that cannot have its own."""
    return Slice(mmap.mmap(-1, pages.SMALL_PAGE_BYTES), RegionReport(0, SMALL, SMALL, why, 0.0))


def alone(request: RegionRequest) -> Slice:
    """Make a region and map its only slice; its memory is there as long as that.

    Raises RegionError: require cannot be met, or there is not enough memory.
    """
    handle, descriptor = create(request)
    try:
        return attach(handle, 0)
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def open_whole(handle: RegionHandle) -> memoryview:
    """Map all slices as they are, for the process that moves blocks between the region and a disk.

    Nothing is touched or locked: that is done, once and on the right NUMA node, by the ranks, so they attach
    first. A disk may read and write in the view directly (O_DIRECT): it begins on a page, as each slice does.

    The region was made with `shared`, and its creator lives and still has its descriptor open. Once mapped,
    the view, of shape (slices * handle.slice_bytes,), needs neither: the mapping ends with the last view of
    it. Raises RegionError: the region belongs to one process alone, or cannot be reached.
    """
    if not handle.path:
        raise RegionError(
            "the region is one process's own memory; make it with shared=True to open it in another"
        )
    return memoryview(_map(handle.path))


def _map(path: str, size_bytes: int = 0, offset: int = 0) -> mmap.mmap:
    """Map a piece of a memfd, or all of it where `size_bytes` is 0."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise RegionError(
            f"the region cannot be opened at {path}: {os.strerror(error.errno or 0)}; its creator has ended "
            "or closed it, or is another user's"
        ) from error
    try:
        return _private(mmap.mmap(descriptor, size_bytes, offset=offset))
    except (OSError, ValueError) as error:  # ValueError: the file is smaller
        raise RegionError(f"the region at {path} cannot be mapped: {error}") from error
    finally:
        os.close(descriptor)


def _check_memory(total: int) -> None:
    bound = tightest_bound()
    if total > bound.available_bytes:
        raise RegionError(
            f"cpu_capacity_bytes: the region needs {format_bytes(total)}, but {bound.source} leaves "
            f"{format_bytes(max(0, bound.available_bytes))}; lower it or give the engine more memory"
        )


def _on_hugetlbfs(request: RegionRequest) -> int:
    """Return a memfd with all its huge pages taken, each slice's from its node, or reserved if it grows.

    Raises OSError: the pool or a control group has not enough; nothing is kept.
    """
    size, page = request.slice_bytes, request.hugepage_bytes
    descriptor, memory = pages.reserved_hugetlb(request.slices * size, page)
    start = _address(memory)
    slices = [
        pages.Range(start + number * size, size, request.node(number)) for number in range(request.slices)
    ]
    try:
        with memory:
            if not request.grows:
                pages.populate(slices, page)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _private(memory: mmap.mmap) -> mmap.mmap:
    """Keep a mapping out of core dumps: it holds people's prompts, and is as large as all memory."""
    memory.madvise(mmap.MADV_DONTDUMP)
    return memory


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
