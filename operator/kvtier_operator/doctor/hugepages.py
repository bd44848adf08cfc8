"""Whether explicit huge pages under the CPU tier can be had, and what they gain on this very node."""

import ctypes
import mmap
import os
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from kvtier_common.kernel import lowest_limit
from kvtier_operator.doctor.memory import probe_memory
from kvtier_operator.doctor.verdict import Place, Verdict
from kvtier_operator.planning.pod.demands import HugepagesDemand
from kvtier_operator.planning.units import GIB, KIB, MIB, count, quantity, size

_CHECK: Final = "hugepages"
_WORTH_TELLING_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class PageCosts:
    """What taking and locking memory costs, in seconds a GiB; None where there is none to be had."""

    ordinary_s: float | None  # of ordinary pages
    huge_s: float | None  # of huge pages
    page_bytes: int  # size of these
    free_pages: int = 0  # how many of these nobody has reserved


def page_gain(size_bytes: int, costs: PageCosts) -> str:
    """How much sooner a tier is taken with huge pages; empty where that was not measured."""
    if costs.ordinary_s is None or costs.huge_s is None:
        return ""
    ordinary_s, huge_s = (cost_s * size_bytes / GIB for cost_s in (costs.ordinary_s, costs.huge_s))
    return (
        f"taking and locking {size(size_bytes)} takes {huge_s:.1f} s with them and {ordinary_s:.1f} s with "
        f"ordinary pages ({costs.huge_s:.2f} and {costs.ordinary_s:.2f} s/GiB, measured here)"
    )


def huge_pages_unused(size_bytes: int, costs: PageCosts, place: Place) -> Verdict | None:
    """For a tier without huge pages where enough of them lie idle; None where there is nothing to gain."""
    gain = page_gain(size_bytes, costs)
    if not gain or costs.free_pages * costs.page_bytes < size_bytes:
        return None
    saved_s = ((costs.ordinary_s or 0) - (costs.huge_s or 0)) * size_bytes / GIB
    if saved_s < _WORTH_TELLING_S:
        return None
    return Verdict.passed(
        _CHECK,
        f"none are asked for, and {count(costs.free_pages)} of {size(costs.page_bytes)} are free on "
        f"{place.name}: {gain}; spec.tiers.cpu.hugepages.policy Prefer uses them",
    )


@dataclass(frozen=True, slots=True)
class HugepagesFacts:
    """The result of the probe, and the numbers that explain it."""

    refusal: str  # why the kernel refused the pages, in its words; empty where they could be taken
    # free pages of that size that nobody has reserved; None where the kernel has no such size
    free_pages: int | None
    limit_bytes: int | None  # the control groups' hugetlb limit; None without one
    # what taking them costs, beside ordinary ones; None where that was not measured
    costs: PageCosts | None = None


def hugepages(demand: HugepagesDemand, facts: HugepagesFacts, place: Place) -> Verdict:
    """`Require` fails, `Prefer` warns; the control group's limit is named before the machine's pool."""
    numbers = f"{count(demand.pages)} pages of {size(demand.page_bytes)} needed ({size(demand.bytes)})"
    problem = _problem(demand, facts, place)
    if problem is None:
        gain = page_gain(demand.bytes, facts.costs) if facts.costs else ""
        return Verdict.passed(
            _CHECK, f"{numbers}, all of them could be taken" + (f"; {gain}" if gain else "")
        )
    if not demand.required:
        return Verdict.warned(
            _CHECK, f"{numbers}, {problem[0]}: the tier falls back to ordinary pages (policy Prefer)"
        )
    return Verdict.failed(
        _CHECK, f"{numbers}, {problem[0]}; {problem[1]}, or set spec.tiers.cpu.hugepages.policy to Prefer"
    )


def _problem(demand: HugepagesDemand, facts: HugepagesFacts, place: Place) -> tuple[str, str] | None:
    """What is wrong and what to do; None where nothing is."""
    kind = f"hugepages-{quantity(demand.page_bytes)}"
    if facts.limit_bytes is not None and facts.limit_bytes < demand.bytes:
        return (
            f"the control group's limit is {size(facts.limit_bytes)}",
            f"see that the pod requests {kind}: {quantity(demand.bytes)} and nothing lowers it"
            if place.in_pod
            else "raise the control group's hugetlb limit",
        )
    if not facts.refusal:
        return None
    if facts.free_pages is None:
        return (
            f"the kernel of {place.name} has no pages of that size",
            "use another pageSize or another node",
        )
    missing = demand.pages - facts.free_pages
    if missing <= 0:
        return (
            f"{count(facts.free_pages)} are free on {place.name}, but the kernel refused: {facts.refusal}",
            "see the control groups' hugetlb limits and the NUMA nodes that the pod may use",
        )
    pool = "nr_hugepages of that size" + (", then restart the kubelet" if place.in_pod else "")
    return (
        f"{count(facts.free_pages)} free on {place.name}",
        f"reserve {count(missing)} more there ({pool})",
    )


_SIZE_SHIFT: Final = 26
"""MFD_HUGE_SHIFT of linux/memfd.h: log2 of the page size goes into the flags from this bit."""


def memfd(page_bytes: int | None = None) -> int:
    """A descriptor, which the caller closes; of ordinary pages where no size is given.

    Raises:
        OSError: The kernel has no pages of that size.
    """
    huge = os.MFD_HUGETLB | (page_bytes.bit_length() - 1) << _SIZE_SHIFT if page_bytes else 0
    return os.memfd_create("kvtier-doctor", os.MFD_CLOEXEC | huge)


SAMPLE_BYTES: Final = 64 * MIB
"""Some 20 ms of ordinary pages."""
_ROUNDS: Final = 3


def seconds_per_gib(page_bytes: int | None = None) -> float | None:
    """Takes, maps and locks a sample as the CPU tier's region is, and gives it back.

    Returns:
        The median of a few rounds; None where the kernel does not give so much.
    """
    size_bytes = max(SAMPLE_BYTES, page_bytes or 0)
    try:
        return median(_seconds(page_bytes, size_bytes) for _ in range(_ROUNDS)) * GIB / size_bytes
    except OSError:
        return None


def _seconds(page_bytes: int | None, size_bytes: int) -> float:
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = memfd(page_bytes)
    try:
        os.ftruncate(descriptor, size_bytes)
        begun_s = time.perf_counter()
        os.posix_fallocate(descriptor, 0, size_bytes)  # an error where a touch would be a SIGBUS
        with mmap.mmap(descriptor, size_bytes, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE) as memory:
            start = ctypes.c_char.from_buffer(memory)
            libc.mlock(ctypes.byref(start), ctypes.c_size_t(size_bytes))  # where that is refused: without
            ended_s = time.perf_counter()
            del start
        return ended_s - begun_s
    finally:
        os.close(descriptor)


_POOLS: Final = Path("/sys/kernel/mm/hugepages")
_SPARE_MEMORY_BYTES: Final = 8 * SAMPLE_BYTES
"""Of memory: whoever takes a sample in a full control group is killed."""


def probe_hugepages(demand: HugepagesDemand) -> HugepagesFacts:
    """Tries to take them; the pool's and the control group's numbers explain a refusal.

    All are reserved, which the pool answers at once, and one is taken: the kernel zeroes what it hands out,
    many seconds for 100 GiB. Only where no control group shows its limit are all of them taken.
    """
    unit = f"{demand.page_bytes // GIB}GB" if demand.page_bytes >= GIB else f"{demand.page_bytes // MIB}MB"
    limit = lowest_limit(controller="hugetlb", v1=f"hugetlb.{unit}.limit_in_bytes", v2=f"hugetlb.{unit}.max")
    proof = demand.bytes if limit is None else demand.page_bytes
    free = _free_pages(demand.page_bytes)
    refusal = _take(demand, proof)
    costs = None if refusal else page_costs(demand.page_bytes, free or 0)
    return HugepagesFacts(refusal=refusal, free_pages=free, limit_bytes=limit, costs=costs)


def page_costs(page_bytes: int, free_pages: int | None = None) -> PageCosts:
    """Measures what pages of a size cost beside ordinary ones."""
    free = (_free_pages(page_bytes) or 0) if free_pages is None else free_pages
    has_memory = probe_memory().limit_bytes >= _SPARE_MEMORY_BYTES
    huge_s = seconds_per_gib(page_bytes) if free and has_memory else None
    return PageCosts(seconds_per_gib() if huge_s is not None else None, huge_s, page_bytes, free)


def _take(demand: HugepagesDemand, proof_bytes: int) -> str:
    """Reserves all pages and takes `proof_bytes` of them; returns why that failed, or nothing.

    Mapping a memfd of huge pages reserves them; fallocate(2) takes them before anything touches them. Both
    answer an error where a touch would be a SIGBUS.
    """
    try:
        descriptor = memfd(demand.page_bytes)
    except OSError as error:
        return os.strerror(error.errno or 0)
    try:
        os.ftruncate(descriptor, demand.bytes)
        with mmap.mmap(descriptor, demand.bytes):
            os.posix_fallocate(descriptor, 0, proof_bytes)
    except OSError as error:
        return os.strerror(error.errno or 0)
    finally:
        os.close(descriptor)
    return ""


def _free_pages(page_bytes: int) -> int | None:
    """Free pages that no one has reserved (Linux, Documentation/admin-guide/mm/hugetlbpage.rst)."""
    pool = _POOLS / f"hugepages-{page_bytes // KIB}kB"
    try:
        free, reserved = (
            int((pool / name).read_text(encoding="ascii")) for name in ("free_hugepages", "resv_hugepages")
        )
    except OSError:
        return None
    return max(0, free - reserved)
