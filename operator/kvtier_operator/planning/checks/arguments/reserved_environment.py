"""Environment variables that kvtier computes."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.pod_weights import CACHE_VARIABLES

_VERDICTS: Final = Verdicts("reserved-environment", "spec.engine.env")
_RESERVED: Final = {
    "PYTHONHASHSEED": "block hashes of all ranks and restarts must agree",
    "VLLM_CPU_KVCACHE_SPACE": "spec.engine.kvCacheMemory makes it",
    "LMCACHE_CONFIG_FILE": "kvtier writes that file",
    "LMCACHE_LOCAL_CPU": "spec.tiers.cpu decides it",
    "LMCACHE_MAX_LOCAL_CPU_SIZE": "spec.tiers.cpu.capacity makes it",
    "LMCACHE_LOCAL_DISK": "spec.tiers.disk.volume makes it",
    "LMCACHE_MAX_LOCAL_DISK_SIZE": "spec.tiers.disk.capacity makes it",
    "LMCACHE_LOCAL_CPU_USE_HUGEPAGES": "spec.tiers.cpu.hugepages makes it",
    "LMCACHE_CHUNK_SIZE": "the tiers' tokens are counted in these chunks",
}


def reserved_environment(given: CheckInput) -> CheckResult:
    """Variables that would make the engine run with other sizes than planned; LMCache's others only warn."""
    unplanned, faults = [], []
    volume = "weights are kept in spec.model.volume"
    reserved = _RESERVED | (
        dict.fromkeys(CACHE_VARIABLES, volume)
        if given.spec.model.volume and not given.spec.model.source
        else {}
    )
    for variable in given.spec.engine.env:
        field = f"spec.engine.env[{variable.name}]"
        if variable.name in reserved:
            faults.append(
                (field, f"{variable.name} is kvtier's to set: {reserved[variable.name]}; remove it")
            )
        elif variable.name in given.backend.env:
            faults.append((field, f"backend {given.spec.backend} sets {variable.name}; remove it"))
        elif variable.name.startswith("LMCACHE_"):
            unplanned.append(variable.name)
    if faults:
        return _VERDICTS.reject_each("ReservedVariable", faults)
    if unplanned:
        return _VERDICTS.warn(
            "UnplannedVariable",
            f"{', '.join(unplanned)}: LMCache reads them, the plan does not know them; remove "
            "what changes sizes",
            by_itself="passes them on",
        )
    return _VERDICTS.passed("no variable that kvtier computes")
