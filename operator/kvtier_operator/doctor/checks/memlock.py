"""Whether the CPU tier can be locked in memory."""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.doctor.verdict import Place, Verdict
from kvtier_operator.planning.pod.demands import MemlockDemand
from kvtier_operator.planning.units import size

_CHECK: Final = "memlock"


@dataclass(frozen=True, slots=True)
class MemlockFacts:
    """The result of the probe, and the numbers that explain it.

    Attributes:
        refusal: Why the kernel refused to lock as much, in its words; empty where it could be locked.
        limit_bytes: RLIMIT_MEMLOCK; None for unlimited.
        ipc_lock: Whether the capability IPC_LOCK is effective.
    """

    refusal: str
    limit_bytes: int | None
    ipc_lock: bool


def memlock(demand: MemlockDemand, found: MemlockFacts, place: Place) -> Verdict:
    """`Require` fails, `Prefer` warns."""
    if not demand.bytes:
        return Verdict.passed(_CHECK, "nothing to lock: explicit huge pages are never swapped")
    limit = "unlimited" if found.limit_bytes is None else size(found.limit_bytes)
    lifted = "effective" if found.ipc_lock else "not effective"
    numbers = f"{size(demand.bytes)} to lock in each process, RLIMIT_MEMLOCK is {limit}, IPC_LOCK is {lifted}"
    if not found.refusal:
        return Verdict.passed(_CHECK, numbers)
    problem = f"{numbers}, the kernel refused: {found.refusal}"
    if not demand.required:
        return Verdict.warned(_CHECK, f"{problem}: the tier stays unlocked (policy Prefer)")
    return Verdict.failed(
        _CHECK, f"{problem}; {_advice(found, place)}, or set spec.tiers.cpu.memlock.policy to Prefer"
    )


def _advice(found: MemlockFacts, place: Place) -> str:
    if not place.in_pod:
        return "raise the limit (ulimit -l unlimited)"
    if found.ipc_lock:
        # capabilities of a user namespace do not count for mlock(2), which asks the first one
        return "run the pod without a user namespace (hostUsers) and without a sandbox that refuses mlock"
    return (
        f"set LimitMEMLOCK=infinity for the container runtime of {place.name} (systemctl edit containerd) "
        "and restart it, or let the pod run as root with IPC_LOCK"
    )
