"""Whether /dev/shm is large enough."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import size, size_exact
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("shared-memory", "spec.engine.shmSize")


def shared_memory(given: CheckInput) -> CheckResult:
    """A tier that is kept there is all of it filled at start (vLLM 0.32, v1/kv_offload/cpu)."""
    needed, asked = given.backend.shm_bytes, given.spec.engine.shm_size
    if asked and asked.bytes <= needed:
        return _VERDICTS.reject(
            "ShmTooSmall",
            f"{size_exact(asked.bytes)} of /dev/shm cannot hold the CPU tier, {size_exact(needed)}, and "
            "vLLM's own queues; leave shmSize out to have it computed",
        )
    machine = given.machine.shm_bytes
    replicas = max(1, given.spec.least_replicas)
    if machine is not None and needed * replicas > machine:
        return _VERDICTS.reject(
            "MachineShmTooSmall",
            f"the CPU tier needs {size_exact(needed * replicas)} in /dev/shm, this machine's has "
            f"{size_exact(machine)}; lower the capacity, or remount /dev/shm larger",
            field="spec.tiers.cpu.capacity",
        )
    return _VERDICTS.passed(f"{size(given.budget.shm_bytes)} of /dev/shm, {size(needed)} of it for the tier")
