"""Whether environment variables leave alone what kvtier computes."""

from typing import Final

from kvtier_connector.payload import PLUGINS, SEARCH_PATH
from kvtier_operator.api.spec.tiers import Backend
from kvtier_operator.planning.arguments.environment import unread
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.backends.engine_image import engine_minor
from kvtier_operator.planning.base.vllm_minor import possible_minors
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.pod_weights import CACHE_VARIABLES

_RESERVED_VARIABLES: Final = {
    "PYTHONHASHSEED": "block hashes of all ranks and restarts must agree",
    "VLLM_CPU_KVCACHE_SPACE": "it derives it from spec.engine.kvCacheMemory",
}

_ADDED_TO: Final = {
    SEARCH_PATH: "puts its connector in front of it",
    PLUGINS: "puts its plug-in behind it",
}


@check("spec.engine.env")
def reserved_environment(parts: CheckInput) -> CheckResult:
    """Variables that would change sizes from those planned; what else a backend reads only warns."""
    unplanned, faults = dict[str, str](), []
    backends = [traits_of(backend) for backend in Backend]
    own = {*parts.backend.env, *(variable["name"] for variable in parts.backend.env_from)}
    readers = {traits.env_prefix: traits.project for traits in backends if traits.env_prefix}
    volume = "weights are kept in spec.model.volume"
    reserved = dict(item for traits in backends for item in traits.reserved_env.items())
    reserved |= _RESERVED_VARIABLES | (
        dict.fromkeys(CACHE_VARIABLES, volume)
        if parts.spec.model.volume and not parts.spec.model.source
        else {}
    )
    for variable in parts.spec.engine.env:
        field = f"spec.engine.env[{variable.name}]"
        if variable.name in reserved:
            faults.append((field, f"kvtier sets {variable.name}: {reserved[variable.name]}; remove it"))
        elif variable.name in own:
            faults.append((field, f"backend {parts.spec.backend} sets {variable.name}; remove it"))
        elif parts.traits.in_payload and variable.name in _ADDED_TO and variable.value_from is not None:
            faults.append((field, f"kvtier {_ADDED_TO[variable.name]}: set {variable.name} by value"))
        elif reader := next(
            (readers[prefix] for prefix in readers if variable.name.startswith(prefix)), None
        ):
            unplanned[variable.name] = reader
    if faults:
        return reserved_environment.reject_each("ReservedVariable", faults)
    if unplanned:
        who = " and ".join(dict.fromkeys(unplanned.values()))
        return reserved_environment.warn(
            "UnplannedVariable",
            f"{', '.join(unplanned)}: {who} reads them, the plan does not know them; remove "
            "what changes sizes",
            by_itself="passes them on",
            weight=-10,
        )
    return reserved_environment.passed("no variable that kvtier computes")


@check("spec.engine.env")
def known_environment(parts: CheckInput) -> CheckResult:
    """VLLM_ variables that do nothing: vLLM logs a line (platforms/interface.py, validate_environ)."""
    minors = possible_minors(engine_minor(parts.spec, parts.observed))
    which = "0." + " or 0.".join(map(str, minors))
    unread_names = [
        (
            f"{known_environment.field}[{variable.name}]",
            f"vLLM {which} does not read {variable.name}: {advice}",
        )
        for variable in parts.spec.engine.env
        if (advice := unread(variable.name, minors)) is not None
    ]
    if not unread_names:
        return known_environment.passed("no variable of vLLM's that vLLM does not read")
    return known_environment.warn_each(
        "VariableNotKnown", unread_names, by_itself="passes on what is set", weight=-10
    )


_NO_LATENTS: Final = "VLLM_MLA_DISABLE"
_OFF: Final = "0"
_LOADS_ADAPTERS: Final = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
_ON: Final = frozenset({"1", "true"})


def may_be_on(parts: CheckInput, name: str) -> bool:
    """Whether the engine's environment switches something on, or may: what a source holds is not known."""
    variables = [variable for variable in parts.spec.engine.env if variable.name == name]
    return any(
        variable.value_from is not None or (variable.value or "").strip().lower() in _ON
        for variable in variables
    )


@check("spec.engine.env")
def unplanned_environment(parts: CheckInput) -> CheckResult:
    """What vLLM reads before anything that the plan says."""
    for variable in parts.spec.engine.env:
        if variable.name == _NO_LATENTS and variable.value != _OFF and parts.geometry.mla:
            return unplanned_environment.reject(
                "UnplannedVariable",
                f"{_NO_LATENTS} keeps the heads that a latent expands to, and the plan counts latents: "
                "remove it",
                field=f"spec.engine.env[{variable.name}]",
                weight=-10,
            )
    if may_be_on(parts, _LOADS_ADAPTERS):
        return unplanned_environment.warn(
            "AdaptersMayBeReplaced",
            f"{_LOADS_ADAPTERS}: an adapter that is loaded at run time is in one engine alone, and one that "
            "is loaded again with other weights under its name and path is answered from what the former "
            "computed, on the device and in the tiers: give new weights another name",
            field=f"spec.engine.env[{_LOADS_ADAPTERS}]",
            weight=40,
        )
    return unplanned_environment.passed("no variable that changes what an engine keeps")


_VARIABLES: Final = frozenset({"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"})
"""Names of one setting (vllm/device_allocator/alloc_conf.py); vLLM's check looks at the second alone."""
_SEGMENTS: Final = "expandable_segments"
_OWN_POOL: Final = ("--enable-sleep-mode", "--enable-cumem-allocator")


@check("spec.engine.env")
def expandable_segments(parts: CheckInput) -> CheckResult:
    """vLLM, config/vllm.py, _verify_kv_transfer_compat: whatever the connector, unless the cache has a pool.

    Such segments may be mapped to other physical pages while a connector moves what is in them.
    """
    if any(parts.spec.engine.extra_args.is_on(option) for option in _OWN_POOL):
        return expandable_segments.passed(
            "the device's cache is in a pool of its own, without expandable segments"
        )
    faults = [
        (f"spec.engine.env[{variable.name}]", _message(variable.name))
        for variable in parts.spec.engine.env
        if variable.name in _VARIABLES and _is_on(variable.value or "")
    ]
    if faults:
        return expandable_segments.reject_each("ExpandableSegments", faults)
    return expandable_segments.passed("PyTorch's memory has no expandable segments")


def _message(variable: str) -> str:
    return (
        f"vLLM refuses {_SEGMENTS}:True beside a KV connector, as every backend has one: take it out of "
        f"{variable}, or add {_OWN_POOL[1]} to spec.engine.extraArgs"
    )


def _is_on(settings: str) -> bool:
    pairs = (setting.partition(":") for setting in settings.split(","))
    return any(
        name.strip() == _SEGMENTS and value.strip().lower() in {"true", "1"} for name, _, value in pairs
    )
