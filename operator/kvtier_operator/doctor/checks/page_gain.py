"""What explicit huge pages gain, or would gain, on this very node."""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.doctor.verdict import Place, Verdict
from kvtier_operator.planning.units import GIB, count, size

_CHECK: Final = "hugepages"
_WORTH_TELLING_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class PageCosts:
    """What taking and locking memory costs, in seconds a GiB; None where there is none to be had.

    Attributes:
        ordinary_s: Of ordinary pages.
        huge_s: Of huge pages.
        page_bytes: Size of these.
        free_pages: How many of these nobody has reserved.
    """

    ordinary_s: float | None
    huge_s: float | None
    page_bytes: int
    free_pages: int = 0


def page_gain(size_bytes: int, costs: PageCosts) -> str:
    """How much sooner a tier is taken with huge pages; empty where that was not measured.

    Args:
        size_bytes: Of the tier, in one engine pod.
        costs: Measured here.
    """
    if costs.ordinary_s is None or costs.huge_s is None:
        return ""
    ordinary_s, huge_s = (each * size_bytes / GIB for each in (costs.ordinary_s, costs.huge_s))
    return (
        f"taking and locking {size(size_bytes)} takes {huge_s:.1f} s with them and {ordinary_s:.1f} s with "
        f"ordinary pages ({costs.huge_s:.2f} and {costs.ordinary_s:.2f} s/GiB, measured here)"
    )


def huge_pages_unused(size_bytes: int, costs: PageCosts, place: Place) -> Verdict | None:
    """For a tier without huge pages where enough of them lie idle; None where there is nothing to gain.

    Args:
        size_bytes: Of the tier, in one engine pod.
        costs: Measured here.
        place: Where.
    """
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
