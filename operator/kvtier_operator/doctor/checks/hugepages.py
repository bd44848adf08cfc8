"""Whether the explicit huge pages under the CPU tier can be had."""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.doctor.checks.page_gain import PageCosts, page_gain
from kvtier_operator.doctor.verdict import Place, Verdict
from kvtier_operator.planning.pod.demands import HugepagesDemand
from kvtier_operator.planning.units import count, quantity, size

_CHECK: Final = "hugepages"


@dataclass(frozen=True, slots=True)
class HugepagesFacts:
    """The result of the probe, and the numbers that explain it.

    Attributes:
        refusal: Why the kernel refused the pages, in its words; empty where they could be taken.
        free_pages: Free pages of that size that nobody has reserved; None where the kernel has no such size.
        limit_bytes: The control groups' hugetlb limit; None without one.
        costs: What taking them costs, beside ordinary ones; None where that was not measured.
    """

    refusal: str
    free_pages: int | None
    limit_bytes: int | None
    costs: PageCosts | None = None


def hugepages(demand: HugepagesDemand, found: HugepagesFacts, place: Place) -> Verdict:
    """`Require` fails, `Prefer` warns; the control group's limit is named before the machine's pool."""
    numbers = f"{count(demand.pages)} pages of {size(demand.page_bytes)} needed ({size(demand.bytes)})"
    problem = _problem(demand, found, place)
    if problem is None:
        gain = page_gain(demand.bytes, found.costs) if found.costs else ""
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


def _problem(demand: HugepagesDemand, found: HugepagesFacts, place: Place) -> tuple[str, str] | None:
    """What is wrong and what to do; None where nothing is."""
    kind = f"hugepages-{quantity(demand.page_bytes)}"
    if found.limit_bytes is not None and found.limit_bytes < demand.bytes:
        return (
            f"the control group's limit is {size(found.limit_bytes)}",
            f"see that the pod requests {kind}: {quantity(demand.bytes)} and nothing lowers it"
            if place.in_pod
            else "raise the control group's hugetlb limit",
        )
    if not found.refusal:
        return None
    if found.free_pages is None:
        return (
            f"the kernel of {place.name} has no pages of that size",
            "use another pageSize or another node",
        )
    missing = demand.pages - found.free_pages
    if missing <= 0:
        return (
            f"{count(found.free_pages)} are free on {place.name}, but the kernel refused: {found.refusal}",
            "see the control groups' hugetlb limits and the NUMA nodes that the pod may use",
        )
    pool = "nr_hugepages of that size" + (", then restart the kubelet" if place.in_pod else "")
    return (
        f"{count(found.free_pages)} free on {place.name}",
        f"reserve {count(missing)} more there ({pool})",
    )
