"""What one batch has at most: tokens of a step, and sequences.

Source of the defaults: vLLM, engine/arg_utils.py, get_batch_defaults, 0.32 and 0.33.
"""

from typing import Final

from kvtier_operator.api.spec.engine import Device, EngineSpec
from kvtier_operator.api.spec.gpu import Gpu
from kvtier_operator.planning.units import GIB

STEP: Final = "--max-num-batched-tokens"
_LIMITS: Final = ("--max-num-scheduled-tokens", "--long-prefill-token-threshold")
"""What a step computes of one prompt at most, below the tokens of its batch (v1/core/sched/scheduler.py)."""
_STEP_TOKENS: Final = ((160 * GIB, 16_384), (70 * GIB, 8_192), (0, 2_048))
"""By the GPU's memory."""
_A100: Final = frozenset({Gpu.A100_40, Gpu.A100_80})
"""GPUs of which vLLM takes fewer tokens and sequences than of others with their memory."""
_HOPPER_STEP_TOKENS: Final = 8_192
_CPU_STEP_TOKENS: Final = 2_048
SEQUENCES: Final = "--max-num-seqs"
_SMALL_GPU_BYTES: Final = 70 * GIB
_SEQUENCES_BY_DEFAULT: Final = 1_024
_SEQUENCES_OF_SMALL_GPU: Final = 256
_CPU_SEQUENCES: Final = 128
_MODE: Final = "--performance-mode"
_TWICE: Final = "throughput"


def step_tokens(engine: EngineSpec) -> int:
    """Tokens that one step of a prefill computes; vLLM's default, on Hopper if need be, where not said."""
    limits = (engine.extra_args.number(option) for option in _LIMITS)
    return min((_batched_tokens(engine), *(limit for limit in limits if limit is not None and limit > 0)))


def _batched_tokens(engine: EngineSpec) -> int:
    step = engine.extra_args.number(STEP)
    if step is not None and step > 0:
        return step
    factor = _factor(engine)
    if engine.device is Device.CPU:
        return factor * _CPU_STEP_TOKENS * engine.tensor_parallel_size
    memory_bytes = _memory_bytes(engine)
    if memory_bytes is None:
        return factor * _HOPPER_STEP_TOKENS
    return factor * next(tokens for least, tokens in _STEP_TOKENS if memory_bytes >= least)


def most_batched_tokens(engine: EngineSpec) -> int:
    """Tokens of a step that vLLM takes at most where nothing says them; of the largest GPU if need be."""
    if engine.device is Device.GPU and engine.gpu_bytes is None:
        return _factor(engine) * _STEP_TOKENS[0][1]
    return _batched_tokens(engine)


def sequences_of(engine: EngineSpec) -> int:
    """Sequences of one batch at most; vLLM's default where not said."""
    asked = engine.extra_args.number(SEQUENCES)
    if asked is not None and asked > 0:
        return asked
    if engine.device is Device.CPU:
        return _CPU_SEQUENCES * engine.tensor_parallel_size
    memory_bytes = _memory_bytes(engine)
    small = memory_bytes is not None and memory_bytes < _SMALL_GPU_BYTES
    return _factor(engine) * (_SEQUENCES_OF_SMALL_GPU if small else _SEQUENCES_BY_DEFAULT)


def _memory_bytes(engine: EngineSpec) -> int | None:
    """Of the GPU, as the defaults look at it."""
    return 0 if engine.gpu in _A100 else engine.gpu_bytes


def _factor(engine: EngineSpec) -> int:
    return 2 if engine.extra_args.value(_MODE) == _TWICE else 1
