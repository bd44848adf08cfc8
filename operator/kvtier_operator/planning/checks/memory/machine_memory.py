"""Whether this machine's memory can hold what a local run needs."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.pod.budget import DEVICE_CACHE_LINE
from kvtier_operator.planning.tiers.capacity import CPU_DEVICE_KV_CACHE_BYTES
from kvtier_operator.planning.units import size, size_exact
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("machine-memory", "spec.tiers.cpu.capacity")


def machine_memory(given: CheckInput) -> CheckResult:
    """The tier alone, then the whole pod with its huge pages and sidecars, against physical memory."""
    memory = given.machine.memory_bytes
    if memory is None:
        return _VERDICTS.passed("no machine to look at: nodes are checked before rollout", reason="NotLooked")
    replicas = max(1, given.spec.least_replicas)
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
            f"{size(memory)}; {_ways(given, tier, total - memory)}",
        )
    return _VERDICTS.passed(f"{size(total)} needed, {size(memory)} in this machine")


def _ways(given: CheckInput, tier_bytes: int, over_bytes: int) -> str:
    """What makes the pods smaller, and by enough where one figure tells."""
    engine = given.spec.engine
    ways = []
    if over_bytes < tier_bytes:
        ways.append(f"lower the capacity ({size(tier_bytes)}) by {size(over_bytes)}")
    if given.spec.least_replicas > 1:
        ways.append(f"lower {given.spec.least_replicas_field}")
    if any(line.what == DEVICE_CACHE_LINE for line in given.budget.memory):
        default = f" to less than {size(CPU_DEVICE_KV_CACHE_BYTES)}, its default"
        ways.append(
            "lower spec.engine.kvCacheMemory"
            if engine.kv_cache_memory
            else f"set spec.engine.kvCacheMemory{default}"
        )
    return ", or ".join(ways or ["serve a smaller model here"])


def _times(replicas: int) -> str:
    return f" ({replicas} replicas together)" if replicas > 1 else ""
