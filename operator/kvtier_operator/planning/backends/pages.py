"""Explicit huge pages under a CPU tier: which a pod requests, and what falling back means."""

from collections.abc import Iterable
from typing import Final

from kvtier_operator.api.tiers import CpuTier, HugepageSize, Policy
from kvtier_operator.planning.plan import HugepagesPlan
from kvtier_operator.planning.units import ceil_div

PREFER_NOTE: Final = (
    "hugepages.policy Prefer: a pod cannot prefer explicit huge pages, it can only require them, so the pod "
    "requests none and the tier falls back to ordinary pages; use Require where the nodes have them"
)
_LMCACHE_PAGES_NOTE: Final = "LMCache takes explicit huge pages of 2Mi only; set hugepages.pageSize to 2Mi"


def page_bytes(cpu: CpuTier) -> int:
    """Size of one explicit huge page that the tier asks for; 2 MiB where it names none."""
    return (cpu.hugepages.page_size or HugepageSize.TWO_MIB).bytes


def required_pages(cpu: CpuTier, slice_bytes: Iterable[int]) -> HugepagesPlan | None:
    """Pages that the pod requests, every slice of the tier rounded up to a page; None unless required.

    Kubernetes schedules a pod that requests huge pages only where they are free, and caps one that
    requests none at 0 (kubernetes/kubernetes #71233): there is no way to say `if there are any`.
    """
    if cpu.hugepages.policy is not Policy.REQUIRE:
        return None
    size = page_bytes(cpu)
    return HugepagesPlan(page_bytes=size, pages=sum(ceil_div(part, size) for part in slice_bytes))


def pages_notes(cpu: CpuTier | None) -> tuple[str, ...]:
    """What a reader should know of LMCache and the pages that the tier asks for.

    Source: lmcache 0.5.6, lmcache/v1/memory_management.py (MAP_HUGETLB with 2 MiB pages; no falling back).
    """
    if cpu is None or cpu.hugepages.policy is Policy.OFF:
        return ()
    notes = [PREFER_NOTE] if cpu.hugepages.policy is Policy.PREFER else []
    if cpu.hugepages.page_size is HugepageSize.ONE_GIB:
        notes.append(_LMCACHE_PAGES_NOTE)
    return tuple(notes)
