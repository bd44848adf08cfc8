"""Whether the CPU tier can be locked in memory, and what it costs where it is not."""

from typing import Final

from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers import Backend, Policy
from kvtier_operator.planning.backends import any_backend_that
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.pod.devices import not_tested
from kvtier_operator.planning.units import size
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("memlock", "spec.tiers.cpu.memlock.policy")


def memlock(given: CheckInput) -> CheckResult:
    """RLIMIT_MEMLOCK where it bounds what is asked for; who else locks the tier, or that nobody does.

    On CUDA the limit is asked for under `Require` alone: the driver's call is not bounded by it.
    """
    policy = given.spec.tiers.cpu.memlock.policy
    if not given.traits.cpu.locks:
        return _other_backend(given.spec.backend, policy)
    on_cuda = given.spec.engine.device is Device.CUDA and not not_tested(given.spec)
    if policy is Policy.OFF:
        return _off(on_cuda=on_cuda)
    if policy is Policy.PREFER and on_cuda:
        return _VERDICTS.passed(
            "the engine asks the driver to page-lock the tier for DMA, which RLIMIT_MEMLOCK does not bound; "
            "a line of its log, and EnginesReady, say whether it did",
            reason="LeftToDriver",
        )
    return _limit(given, policy)


def _other_backend(backend: Backend, policy: Policy) -> CheckResult:
    if policy is Policy.OFF:
        return _VERDICTS.passed(f"backend {backend} is not told to lock anything", reason="NotAskedFor")
    itself = f"backend {backend} pins its tier by itself on a GPU, and nothing reports whether it did"
    if policy is Policy.REQUIRE:
        return _VERDICTS.warn(
            "MemlockNotVerified",
            f"{itself}; spec.backend {any_backend_that(lambda traits: traits.cpu.locks)} locks and reports",
            by_itself="starts the engines without knowing",
        )
    return _VERDICTS.passed(itself, reason="LeftToBackend")


def _off(*, on_cuda: bool) -> CheckResult:
    if not on_cuda:
        return _VERDICTS.passed("nothing is locked: the policy is Off", reason="NotAskedFor")
    return _VERDICTS.warn(
        "NotPageLocked",
        "Off: the tier is not page-locked, which DMA needs for its full speed (measured: a load took 353 ms "
        "in place of 100, a cold prompt 632 in place of 466); set Prefer, which needs no rights. Off was the "
        "default once, and the API server has written it into resources that did not choose it",
        by_itself="locks nothing",
    )


def _limit(given: CheckInput, policy: Policy) -> CheckResult:
    """RLIMIT_MEMLOCK of this machine in a local run; what a cluster needs otherwise.

    A pod has no field for the limit (Kubernetes #3595): IPC_LOCK lifts it only where it is effective, that
    is for root; otherwise the node's container runtime needs LimitMEMLOCK.
    """
    if given.backend.hugepages:
        return _VERDICTS.passed("explicit huge pages are never swapped: no limit bounds them")
    needed = given.spec.tiers.cpu.capacity.bytes // given.spec.engine.data_parallel_size
    required = policy is Policy.REQUIRE
    if given.observed.machine is None:
        how = (
            "the pod runs with IPC_LOCK as root, or the node's container runtime has LimitMEMLOCK=infinity"
            if required
            else "what RLIMIT_MEMLOCK of the node's container runtime (LimitMEMLOCK) allows is locked"
        )
        reason = "CheckedOnNodes" if required else "LeftToNodes"
        return _VERDICTS.passed(f"{size(needed)} to lock in each engine: {how}", reason=reason)
    limit = given.machine.memlock_bytes
    if limit is None or limit >= needed:
        return _VERDICTS.passed(f"{size(needed)} to lock, limit {'none' if limit is None else size(limit)}")
    numbers = f"{size(needed)} to lock, the limit (ulimit -l) is {size(limit)}"
    if required:
        return _VERDICTS.reject("MemlockTooLow", f"{numbers}; raise the limit, or set policy to Prefer")
    return _VERDICTS.passed(
        f"{numbers}: at most {size(limit)} is locked, the rest may be swapped; a line of the engine's log, "
        "and EnginesReady, say what it got",
        reason="LockedInPart",
    )
