"""Whether the device's own cache can hold one longest sequence."""

from typing import Final

from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.tiers.capacity import (
    ACTIVATION_RESERVE_BYTES,
    GPU_MEMORY_UTILIZATION,
    usable_bytes,
)
from kvtier_operator.planning.units import count, each_of, round_up, size
from kvtier_operator.planning.verdict import CheckResult, Verdicts
from kvtier_operator.planning.weights.device_weights import RankWeights, online_quantization, rank_weights

_VERDICTS: Final = Verdicts("device-cache", "spec.engine.kvCacheMemory")
_MAY_NOT_FIT: Final = "SequenceMayNotFit"
_STARTS: Final = "starts the engines, and EnginesReady has vLLM's words if they end"
_MOST_USED: Final = 0.95
_GPU: Final = "spec.engine.gpuMemory"


def device_cache(given: CheckInput) -> CheckResult:
    """With less, vLLM refuses to start (v1/core/kv_cache_utils.py, check_enough_kv_cache_memory).

    Weights alone are refused where they do not fit; what else a GPU holds is an estimate.
    """
    engine, gpu = given.spec.engine, given.tiers.gpu
    if gpu is None or gpu.bytes_per_rank == 0:
        return _by_weights(given)
    longest = engine.max_model_len or given.geometry.max_position_tokens
    tokens = gpu.held_tokens // engine.data_parallel_size
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
            _MAY_NOT_FIT,
            f"by estimate, {message}{_ways(given)} until each rank has {size(needed)}",
            by_itself=_STARTS,
            field=_GPU,
        )
    return _VERDICTS.reject(
        "SequenceDoesNotFit", f"{message}set spec.engine.kvCacheMemory to at least {size(needed)} a rank"
    )


def _by_weights(given: CheckInput) -> CheckResult:
    """Where no tokens are planned, whether the weights leave room for any."""
    usable, weights = usable_bytes(given.spec.engine), rank_weights(given.spec.engine, given.geometry)
    if usable is None or weights is None:
        return _VERDICTS.passed(
            "the device's own cache is not known before the engine runs", reason="Unknown"
        )
    held = _held(given, weights)
    if usable <= weights.least_bytes:
        return _VERDICTS.reject(
            "NoRoomForCache",
            f"{held}, of which vLLM takes {size(usable)}, and leave nothing for a KV cache; {_ways(given)}",
            field=_GPU,
        )
    if not weights.known:
        return _VERDICTS.passed(f"{held}, which a plan cannot know: the engine says it", reason="Unknown")
    left, planned = size(usable - weights.most_bytes), size(ACTIVATION_RESERVE_BYTES)
    return _VERDICTS.warn(
        _MAY_NOT_FIT,
        f"by estimate, {held}, and leave {left} of what vLLM takes, no more than the {planned} planned for "
        f"activations: vLLM may not start; {_ways(given)}",
        by_itself=_STARTS,
        field=_GPU,
    )


def _held(given: CheckInput, weights: RankWeights) -> str:
    engine = given.spec.engine
    least, most = size(weights.least_bytes), size(weights.most_bytes)
    gpus = each_of(given.ranks, "GPU")
    method = online_quantization(engine, given.geometry)
    return (
        f"weights of {size(given.geometry.weights_bytes or 0)}{f', {method} on the GPU,' if method else ''} "
        f"take {least if weights.known else f'{least} to {most}'} on {gpus}"
        f" of {size(engine.gpu_memory.bytes if engine.gpu_memory else 0)}"
    )


def _ways(given: CheckInput) -> str:
    """What gives a cache more room, the plainest first; `until` may follow."""
    used = given.spec.engine.gpu_memory_utilization
    ways = [f"{'correct' if given.spec.model.weights else 'set'} spec.model.weights if they are smaller"]
    if used is None:
        ways.append(f"set spec.engine.gpuMemoryUtilization above {GPU_MEMORY_UTILIZATION}")
    elif used < _MOST_USED:
        ways.append("raise spec.engine.gpuMemoryUtilization")
    return f"{', '.join(ways)}, or raise spec.engine.tensorParallelSize"
