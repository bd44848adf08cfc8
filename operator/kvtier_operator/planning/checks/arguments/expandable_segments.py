"""PyTorch's expandable segments, which vLLM refuses beside a KV connector."""

from typing import Final

from kvtier_operator.planning.arguments.extra_args import is_on
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("expandable-segments", "spec.engine.env")
_VARIABLES: Final = frozenset({"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"})
"""Names of one setting (vllm/device_allocator/alloc_conf.py); vLLM's check looks at the second alone."""
_SEGMENTS: Final = "expandable_segments"
_OWN_POOL: Final = ("--enable-sleep-mode", "--enable-cumem-allocator")


def expandable_segments(given: CheckInput) -> CheckResult:
    """vLLM, config/vllm.py, _verify_kv_transfer_compat: whatever the connector, unless the cache has a pool.

    Such segments may be mapped to other physical pages while a connector moves what is in them.
    """
    if any(is_on(given.spec.engine.extra_args, option) for option in _OWN_POOL):
        return _VERDICTS.passed("the device's cache is in a pool of its own, without expandable segments")
    faults = [
        (f"spec.engine.env[{variable.name}]", _message(variable.name))
        for variable in given.spec.engine.env
        if variable.name in _VARIABLES and _is_on(variable.value or "")
    ]
    if faults:
        return _VERDICTS.reject_each("ExpandableSegments", faults)
    return _VERDICTS.passed("PyTorch's memory has no expandable segments")


def _message(variable: str) -> str:
    return (
        f"vLLM refuses {_SEGMENTS}:True beside a KV connector, as every backend has one: take it out of "
        f"{variable}, or add {_OWN_POOL[1]} to spec.engine.extraArgs"
    )


def _is_on(settings: str) -> bool:
    pairs = (each.partition(":") for each in settings.split(","))
    return any(
        name.strip() == _SEGMENTS and value.strip().lower() in {"true", "1"} for name, _, value in pairs
    )
