"""Whether the device writes the KV cache in the element type that it is sized for."""

from typing import Final

from kvtier_operator.api.engine import Device, KVCacheDtype
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.kv_cost import argument
from kvtier_operator.planning.plan import CheckResult

_VERDICTS: Final = Verdicts("cache-dtype", "spec.engine.kvCacheDtype")


def cache_dtype(given: CheckInput) -> CheckResult:
    """On a CPU vLLM 0.32 sizes a bfloat16 cache, but writes float32 into it when it computes in float32.

    Seen as a segmentation fault in reshape_and_cache (csrc/cpu/cpu_attn_vec.hpp) at the first long prompt.
    """
    engine = given.spec.engine
    computed = argument(engine.extra_args, "--dtype")
    if (
        engine.device is Device.CPU
        and engine.kv_cache_dtype is KVCacheDtype.BFLOAT16
        and computed in {"float32", "float"}
    ):
        return _VERDICTS.reject(
            "CacheDtypeNotSupported",
            f"vLLM on a CPU does not convert: with --dtype {computed} it overruns a bfloat16 cache and dies; "
            "set kvCacheDtype to auto",
        )
    return _VERDICTS.passed(f"cache of {engine.kv_cache_dtype} on device {engine.device}")
