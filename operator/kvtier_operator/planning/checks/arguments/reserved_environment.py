"""Environment variables that kvtier computes."""

from typing import Final

from kvtier_operator.api.spec.tiers import Backend
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.pod_weights import CACHE_VARIABLES

_VERDICTS: Final = Verdicts("reserved-environment", "spec.engine.env")
_RESERVED: Final = {
    "PYTHONHASHSEED": "block hashes of all ranks and restarts must agree",
    "VLLM_CPU_KVCACHE_SPACE": "spec.engine.kvCacheMemory makes it",
}


def reserved_environment(given: CheckInput) -> CheckResult:
    """Variables that would change sizes from those planned; what else a backend reads only warns."""
    unplanned, faults = dict[str, str](), []
    backends = [traits_of(each) for each in Backend]
    readers = {each.env_prefix: each.project for each in backends if each.env_prefix}
    volume = "weights are kept in spec.model.volume"
    reserved = dict(item for each in backends for item in each.reserved_env.items())
    reserved |= _RESERVED | (
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
        elif reader := next((readers[each] for each in readers if variable.name.startswith(each)), None):
            unplanned[variable.name] = reader
    if faults:
        return _VERDICTS.reject_each("ReservedVariable", faults)
    if unplanned:
        who = " and ".join(dict.fromkeys(unplanned.values()))
        return _VERDICTS.warn(
            "UnplannedVariable",
            f"{', '.join(unplanned)}: {who} reads them, the plan does not know them; remove "
            "what changes sizes",
            by_itself="passes them on",
        )
    return _VERDICTS.passed("no variable that kvtier computes")
