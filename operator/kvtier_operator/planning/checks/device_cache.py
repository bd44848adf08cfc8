"""Whether the device's own cache can hold one longest sequence."""

from typing import Final

from kvtier_operator.api.engine import Device
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.units import count, round_up, size

_VERDICTS: Final = Verdicts("device-cache", "spec.engine.kvCacheMemory")


def device_cache(given: CheckInput) -> CheckResult:
    """With less, vLLM refuses to start (v1/core/kv_cache_utils.py, check_enough_kv_cache_memory)."""
    engine, gpu = given.spec.engine, given.tiers.gpu
    if gpu is None:
        return _VERDICTS.passed(
            "the device's own cache is not known before the engine runs", reason="Unknown"
        )
    longest = engine.max_model_len or given.geometry.max_position_tokens
    tokens = gpu.tokens // engine.data_parallel_size
    if gpu.bytes_per_rank == 0:
        return _VERDICTS.reject(
            "NoRoomForCache",
            f"weights of {size(given.geometry.weights_bytes or 0)} on {engine.tensor_parallel_size} GPUs "
            f"of {size(engine.gpu_memory.bytes if engine.gpu_memory else 0)} leave nothing for a KV "
            "cache; raise spec.engine.tensorParallelSize",
            field="spec.engine.gpuMemory",
        )
    if longest is None or tokens >= longest:
        return _VERDICTS.passed(f"{count(tokens)} tokens on the device")
    needed = round_up(longest, given.geometry.block_tokens) * given.geometry.kv_bytes_per_token_per_rank
    message = (
        f"the device's cache holds {count(tokens)} tokens, the longest sequence has {count(longest)}: "
        "vLLM will not start; "
        + (f"set spec.engine.maxModelLen to at most {count(tokens)}, or " if tokens else "")
    )
    if engine.kv_cache_memory is None and engine.device is Device.CUDA:
        return _VERDICTS.warn(
            "SequenceMayNotFit",
            f"by estimate, {message}raise spec.engine.tensorParallelSize until each rank has {size(needed)}",
            by_itself="starts the engines, and EnginesReady has vLLM's words if they end",
            field="spec.engine.gpuMemory",
        )
    return _VERDICTS.reject(
        "SequenceDoesNotFit", f"{message}set spec.engine.kvCacheMemory to at least {size(needed)} a rank"
    )
