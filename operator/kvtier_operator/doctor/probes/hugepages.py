"""Takes the huge pages that the tier needs, and gives them back at once."""

import mmap
import os
from pathlib import Path
from typing import Final

from kvtier_common.kernel import lowest_limit
from kvtier_operator.doctor.checks.hugepages import HugepagesFacts
from kvtier_operator.doctor.checks.page_gain import PageCosts
from kvtier_operator.doctor.probes.memfd import memfd
from kvtier_operator.doctor.probes.memory import probe_memory
from kvtier_operator.doctor.probes.page_cost import SAMPLE_BYTES, seconds_per_gib
from kvtier_operator.planning.pod.demands import HugepagesDemand
from kvtier_operator.planning.units import GIB, KIB, MIB

_POOLS: Final = Path("/sys/kernel/mm/hugepages")
_ROOM_BYTES: Final = 8 * SAMPLE_BYTES
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
    """Measures what pages of a size cost beside ordinary ones.

    Args:
        page_bytes: The size.
        free_pages: How many are free, if that is known.
    """
    free = (_free_pages(page_bytes) or 0) if free_pages is None else free_pages
    has_room = probe_memory().limit_bytes >= _ROOM_BYTES
    huge_s = seconds_per_gib(page_bytes) if free and has_room else None
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
