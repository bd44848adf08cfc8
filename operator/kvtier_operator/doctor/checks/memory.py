"""Whether the engine may take as much ordinary memory as the Plan gives it."""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.doctor.verdict import Place, Verdict
from kvtier_operator.planning.units import size

_CHECK: Final = "memory"


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """The tightest limit on memory.

    Attributes:
        limit_bytes: Ordinary memory that this process and its like may take together.
        source: Where the limit stands, such as `memory.max of the control group`.
    """

    limit_bytes: int
    source: str


def memory(needed_bytes: int, found: MemoryFacts, place: Place) -> Verdict:
    """The Plan's limit against the kernel's."""
    numbers = f"{size(needed_bytes)} needed, {size(found.limit_bytes)} allowed ({found.source})"
    if needed_bytes <= found.limit_bytes:
        return Verdict.passed(_CHECK, numbers)
    if place.in_pod:
        return Verdict.failed(
            _CHECK,
            f"{numbers}; see what lowers the pod's memory limit (a LimitRange, a webhook, a "
            "VerticalPodAutoscaler), or lower spec.tiers.cpu.capacity",
        )
    return Verdict.failed(
        _CHECK, f"{numbers}; lower spec.tiers.cpu.capacity by {size(needed_bytes - found.limit_bytes)}"
    )
