"""Whether this machine has the huge pages that a local run needs."""

from typing import Final

from kvtier_operator.api.spec.tiers import Policy
from kvtier_operator.planning.backends.parts import preferred_pages
from kvtier_operator.planning.base.tier_plan import HugepagesPlan
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import count, size
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("hugepages-pool", "spec.tiers.cpu.hugepages.policy")


def hugepages_pool(given: CheckInput) -> CheckResult:
    """Needed against free, of that page size; replicas of a local run add up."""
    policy, pool = given.spec.tiers.cpu.hugepages.policy, given.machine.free_hugepages
    pages = _wanted(given)
    if pages is None or pool is None:
        return _VERDICTS.passed("no pool of this machine to look at", reason="NotLooked")
    needed, free = pages.pages * max(1, given.spec.least_replicas), pool.get(pages.page_bytes, 0)
    numbers = f"{count(needed)} pages of {size(pages.page_bytes)} needed, {count(free)} free"
    if needed <= free:
        return _VERDICTS.passed(numbers)
    advice = f"raise nr_hugepages of that size by {count(needed - free)}"
    if policy is Policy.REQUIRE:
        return _VERDICTS.reject("NotEnoughHugepages", f"{numbers}; {advice}, or set policy to Prefer")
    switch = "shmem_enabled" if _is_shared(given) else "enabled"
    return _VERDICTS.warn(
        "NotEnoughHugepages",
        f"{numbers}; {advice}",
        by_itself=f"goes on with transparent huge pages, if their {switch} allows them, else with 4 KiB",
    )


def _is_shared(given: CheckInput) -> bool:
    """Whether several processes use the region (kvtier_connector.core.index.slots, `TierGeometry.request`).

    The kernel has a switch of its own for such memory (Documentation/admin-guide/mm/transhuge.rst).
    """
    return given.spec.engine.tensor_parallel_size > 1 or given.spec.tiers.disk is not None


def _wanted(given: CheckInput) -> HugepagesPlan | None:
    """Pages required, or those that the backend takes here if there are any."""
    cpu = given.spec.tiers.cpu
    if given.backend.hugepages:
        return given.backend.hugepages
    if cpu.hugepages.policy is not Policy.PREFER or not given.traits.cpu.falls_back:
        return None
    return preferred_pages(cpu, given.tiers.cpu.bytes_per_rank, given.ranks)
