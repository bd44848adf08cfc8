"""Whether this machine has the huge pages that a local run needs."""

from typing import Final

from kvtier_operator.api.tiers import Policy
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.units import count, size

_VERDICTS: Final = Verdicts("hugepages-pool", "spec.tiers.cpu.hugepages.policy")


def hugepages_pool(given: CheckInput) -> CheckResult:
    """Needed against free, of that page size; replicas of a local run add up."""
    cpu, pages = given.spec.tiers.cpu, given.backend.hugepages
    pool = given.machine.free_hugepages
    if cpu is None or pages is None or pool is None:
        return _VERDICTS.passed("no pool of this machine to look at", reason="NotLooked")
    needed, free = pages.pages * max(1, given.spec.replicas), pool.get(pages.page_bytes, 0)
    numbers = f"{count(needed)} pages of {size(pages.page_bytes)} needed, {count(free)} free"
    if needed <= free:
        return _VERDICTS.passed(numbers)
    advice = f"raise nr_hugepages of that size by {count(needed - free)}"
    if cpu.hugepages.policy is Policy.REQUIRE:
        return _VERDICTS.reject("NotEnoughHugepages", f"{numbers}; {advice}, or set policy to Prefer")
    return _VERDICTS.warn(
        "NotEnoughHugepages", f"{numbers}: the tier falls back to transparent huge pages; {advice}"
    )
