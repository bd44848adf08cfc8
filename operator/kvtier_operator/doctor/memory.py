"""Whether the engine may take as much ordinary memory, and /dev/shm is as large, as the Plan says."""

import os
from dataclasses import dataclass
from typing import Final

from kvtier_common.kernel import meminfo_bytes, memory_limit_bytes, physical_bytes
from kvtier_operator.doctor.verdict import Place, Verdict
from kvtier_operator.planning.units import size

_CHECK: Final = "memory"


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """The tightest limit on memory."""

    limit_bytes: int  # ordinary memory that this process and its like may take together
    source: str  # where the limit stands, such as `memory.max of the control group`
    reserved_bytes: int = 0  # of explicit huge pages, which are no ordinary memory, used or not
    available_bytes: int | None = None  # what could be taken now; None where nothing tells it


def memory(needed_bytes: int, facts: MemoryFacts, place: Place) -> Verdict:
    """The Plan's limit against the kernel's."""
    numbers = f"{size(needed_bytes)} needed, {size(facts.limit_bytes)} allowed ({facts.source})"
    if not place.in_pod and facts.available_bytes is not None:
        numbers = f"{numbers}, {size(facts.available_bytes)} of it available now"
    if needed_bytes <= facts.limit_bytes:
        return Verdict.passed(_CHECK, numbers)
    if place.in_pod:
        return Verdict.failed(
            _CHECK,
            f"{numbers}; see what lowers the pod's memory limit (a LimitRange, a webhook, a "
            "VerticalPodAutoscaler), or lower spec.tiers.cpu.capacity",
        )
    return Verdict.failed(
        _CHECK, f"{numbers}; lower spec.tiers.cpu.capacity by {size(needed_bytes - facts.limit_bytes)}"
    )


def probe_memory() -> MemoryFacts:
    """The control groups' limit or physical memory less reserved huge pages, whichever is lower."""
    fields, limit = meminfo_bytes(), memory_limit_bytes()
    reserved = fields.get("Hugetlb", 0)  # of all sizes (Documentation/filesystems/proc.rst)
    ordinary, source = physical_bytes() - reserved, "physical memory"
    if reserved:
        source = f"{source} less {size(reserved)} of huge pages"
    if limit is not None and limit < ordinary:
        ordinary, source = limit, "the control group's limit"
    return MemoryFacts(ordinary, source, reserved, min(fields.get("MemAvailable", ordinary), ordinary))


_SHM_CHECK: Final = "shared-memory"


@dataclass(frozen=True, slots=True)
class SharedMemoryFacts:
    """The file system of shared memory; zeros where there is none."""

    total_bytes: int  # its size
    free_bytes: int  # what of it is free


def shared_memory(needed_bytes: int, facts: SharedMemoryFacts, place: Place) -> Verdict:
    """The size of a pod's own, what is free of one that others use too."""
    if place.in_pod:
        numbers = f"{size(needed_bytes)} of /dev/shm needed, its size is {size(facts.total_bytes)}"
        if needed_bytes <= facts.total_bytes:
            return Verdict.passed(_SHM_CHECK, numbers)
        advice = "see that the pod's volume `shm` is mounted there with its sizeLimit and within its limits"
        return Verdict.failed(_SHM_CHECK, f"{numbers}; {advice}")
    numbers = f"{size(needed_bytes)} of /dev/shm needed, {size(facts.free_bytes)} free"
    if needed_bytes <= facts.free_bytes:
        return Verdict.passed(_SHM_CHECK, numbers)
    advice = (
        "remove what fills it, remount it larger (mount -o remount,size=...), or lower spec.engine.shmSize"
    )
    return Verdict.failed(_SHM_CHECK, f"{numbers}; {advice}")


_SHM: Final = "/dev/shm"  # noqa: S108 - its size is read, nothing is written there


def probe_shared_memory(path: str = _SHM) -> SharedMemoryFacts:
    """What statvfs(3) says of it."""
    try:
        filesystem = os.statvfs(path)
    except OSError:
        return SharedMemoryFacts(0, 0)
    return SharedMemoryFacts(
        filesystem.f_blocks * filesystem.f_frsize, filesystem.f_bavail * filesystem.f_frsize
    )
