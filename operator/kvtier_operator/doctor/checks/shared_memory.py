"""Whether /dev/shm is as large as the Plan says."""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.doctor.verdict import Place, Verdict
from kvtier_operator.planning.units import size

_CHECK: Final = "shared-memory"


@dataclass(frozen=True, slots=True)
class SharedMemoryFacts:
    """The file system of shared memory; zeros where there is none.

    Attributes:
        total_bytes: Its size.
        free_bytes: What of it is free.
    """

    total_bytes: int
    free_bytes: int


def shared_memory(needed_bytes: int, found: SharedMemoryFacts, place: Place) -> Verdict:
    """The size of a pod's own, what is free of one that others use too."""
    if place.in_pod:
        numbers = f"{size(needed_bytes)} of /dev/shm needed, its size is {size(found.total_bytes)}"
        if needed_bytes <= found.total_bytes:
            return Verdict.passed(_CHECK, numbers)
        advice = "see that the pod's volume `shm` is mounted there with its sizeLimit and within its limits"
        return Verdict.failed(_CHECK, f"{numbers}; {advice}")
    numbers = f"{size(needed_bytes)} of /dev/shm needed, {size(found.free_bytes)} free"
    if needed_bytes <= found.free_bytes:
        return Verdict.passed(_CHECK, numbers)
    advice = (
        "remove what fills it, remount it larger (mount -o remount,size=...), or lower spec.engine.shmSize"
    )
    return Verdict.failed(_CHECK, f"{numbers}; {advice}")
