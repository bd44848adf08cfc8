"""Explicit huge pages under a CPU tier: which a pod requests, and what falling back means."""

from collections.abc import Iterable
from typing import Final

from kvtier_operator.api.spec.tiers import CpuTierSpec, HugepageSize, Policy
from kvtier_operator.planning.base.tier_plan import HugepagesPlan
from kvtier_operator.planning.units import ceil_div

PREFER_NOTE: Final = (
    "hugepages.policy Prefer: a pod cannot prefer explicit huge pages, it can only require them, so the pod "
    "requests none and the tier falls back to ordinary pages; use Require where the nodes have them"
)


def page_bytes(cpu: CpuTierSpec) -> int:
    """Size of one explicit huge page that the tier asks for; 2 MiB where it names none."""
    return (cpu.hugepages.page_size or HugepageSize.TWO_MIB).bytes


def preferred_pages(cpu: CpuTierSpec, bytes_per_rank: int, ranks: int) -> HugepagesPlan:
    """Pages that backend KVTier takes where there are any, every rank rounded up to a page."""
    size = page_bytes(cpu)
    return HugepagesPlan(page_bytes=size, pages=ceil_div(bytes_per_rank, size) * ranks)


def required_pages(cpu: CpuTierSpec, slice_bytes: Iterable[int]) -> HugepagesPlan | None:
    """Pages that the pod requests, every slice of the tier rounded up to a page; None unless required.

    Kubernetes schedules a pod that requests huge pages only where they are free, and caps one that
    requests none at 0 (kubernetes/kubernetes #71233): there is no way to say `if there are any`.
    """
    if cpu.hugepages.policy is not Policy.REQUIRE:
        return None
    size = page_bytes(cpu)
    return HugepagesPlan(page_bytes=size, pages=sum(ceil_div(part, size) for part in slice_bytes))
