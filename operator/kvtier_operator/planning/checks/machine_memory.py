"""Whether this machine's memory can hold what a local run needs."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.units import size, size_exact

_VERDICTS: Final = Verdicts("machine-memory", "spec.tiers.cpu.capacity")


def machine_memory(given: CheckInput) -> CheckResult:
    """The tier alone, then the whole pod with its huge pages and sidecars, against physical memory."""
    memory = given.machine.memory_bytes
    if memory is None:
        return _VERDICTS.passed("no machine to look at: nodes are checked before rollout", reason="NotLooked")
    replicas = max(1, given.spec.replicas)
    tier = given.spec.tiers.cpu.capacity.bytes * replicas
    if tier > memory:
        return _VERDICTS.reject(
            "TierLargerThanMachine",
            f"the CPU tier of {size_exact(tier)}{_times(replicas)} is larger than this machine's memory, "
            f"{size_exact(memory)}; lower it",
        )
    pages = given.backend.hugepages.bytes if given.backend.hugepages else 0
    sidecars = sum(sidecar.memory_bytes for sidecar in given.backend.sidecars)
    pod = sum(line.bytes for line in given.budget.memory) + pages + sidecars
    total = pod * replicas
    if total > memory:
        return _VERDICTS.reject(
            "BudgetLargerThanMachine",
            f"the engine with its tiers needs {size(total)}{_times(replicas)}, this machine has "
            f"{size(memory)}; lower the capacity ({size(tier)}) by {size(total - memory)}, or "
            "spec.engine.kvCacheMemory",
        )
    return _VERDICTS.passed(f"{size(total)} needed, {size(memory)} in this machine")


def _times(replicas: int) -> str:
    return f" ({replicas} replicas together)" if replicas > 1 else ""
