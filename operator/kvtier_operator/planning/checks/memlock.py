"""Whether the CPU tier can be locked in memory."""

from typing import Final

from kvtier_operator.api.resource import Backend
from kvtier_operator.api.tiers import Policy
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.units import size

_VERDICTS: Final = Verdicts("memlock", "spec.tiers.cpu.memlock.policy")


def memlock(given: CheckInput) -> CheckResult:
    """RLIMIT_MEMLOCK of this machine in a local run; what a cluster needs otherwise.

    A pod has no field for the limit (Kubernetes #3595): IPC_LOCK lifts it only where it is effective, that
    is for root; otherwise the node's container runtime needs LimitMEMLOCK.
    """
    cpu = given.spec.tiers.cpu
    if cpu.memlock.policy is Policy.OFF:
        return _VERDICTS.passed("locking is left to the driver", reason="NotAskedFor")
    if given.spec.backend is not Backend.KVTIER:
        return _VERDICTS.warn(
            "MemlockNotVerified",
            f"backend {given.spec.backend} does not lock its tier itself: on a GPU the driver pins it, "
            "and nothing reports whether it did; spec.backend KVTier locks and reports",
        )
    needed = cpu.capacity.bytes // given.spec.engine.data_parallel_size
    limit = given.machine.memlock_bytes
    if given.observed.machine is None:
        return _VERDICTS.passed(
            f"{size(needed)} to lock in each engine: the pod runs with IPC_LOCK as root, or the node's "
            "container runtime has LimitMEMLOCK=infinity",
            reason="CheckedOnNodes",
        )
    if limit is None or limit >= needed:
        return _VERDICTS.passed(f"{size(needed)} to lock, limit {'none' if limit is None else size(limit)}")
    numbers = f"{size(needed)} to lock, the limit (ulimit -l) is {size(limit)}"
    if cpu.memlock.policy is Policy.REQUIRE:
        return _VERDICTS.reject("MemlockTooLow", f"{numbers}; raise the limit, or set policy to Prefer")
    return _VERDICTS.warn("MemlockTooLow", f"{numbers}: what is beyond it stays unlocked; raise the limit")
