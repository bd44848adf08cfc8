"""What one prefix keeps of windows and states beside its tokens: once, or again and again along it."""

from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device, EngineSpec
from kvtier_operator.api.spec.gpu import Gpu
from kvtier_operator.planning.base.tier_plan import BackendPlan
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import GIB, ceil_div

RETENTION: Final = "--prefix-cache-retention-interval"
EVERYWHERE: Final = frozenset({"", "None"})
"""Its values that keep every block."""
STEP: Final = "--max-num-batched-tokens"
_LIMITS: Final = ("--max-num-scheduled-tokens", "--long-prefill-token-threshold")
"""What a step computes of one prompt at most, below the tokens of its batch (v1/core/sched/scheduler.py)."""
_STEP_TOKENS: Final = ((160 * GIB, 16_384), (70 * GIB, 8_192), (0, 2_048))
"""vLLM's default by the GPU's memory (engine/arg_utils.py, get_batch_defaults); an A100's is the last."""
A100: Final = frozenset({Gpu.A100_40, Gpu.A100_80})
"""GPUs of which vLLM takes fewer tokens and sequences than of others with their memory."""
_HOPPER_STEP_TOKENS: Final = 8_192
_CPU_STEP_TOKENS: Final = 2_048


def kept_bytes(tokens: int, spec: Spec, geometry: Geometry, backend: BackendPlan | None = None) -> int:
    """Bytes beside the tokens of one prefix, all ranks of one engine.

    Args:
        tokens: Of the prefix.
        spec: What is wanted.
        geometry: KV geometry of one engine.
        backend: Whose tiers keep it; None on the device.
    """
    once = geometry.bytes_per_prefix
    if backend is not None and backend.states_every_tokens is not None:
        return once * max(1, ceil_div(tokens, backend.states_every_tokens))
    interval = retention_tokens(spec, geometry)
    if interval is None:
        return once
    # windows that lie closer than their length share their blocks
    window = 0 if geometry.keeps_states else max((each.window_tokens for each in geometry.groups), default=0)
    own = once * min(interval, window) // window if window else once
    return once + tokens // interval * own


def retention_tokens(spec: Spec, geometry: Geometry) -> int | None:
    """Tokens after which vLLM keeps windows and states again; None where it does so at a prompt's end."""
    arguments = spec.engine.extra_args
    if not geometry.bytes_per_prefix:
        return None
    if arguments.value(RETENTION) in EVERYWHERE:
        return geometry.block_tokens
    interval = arguments.number(RETENTION)
    return interval if interval is not None and interval > 0 else None


def step_tokens(engine: EngineSpec) -> int:
    """Tokens that one step of a prefill computes; vLLM's default, on Hopper if need be, where not said."""
    limits = (engine.extra_args.number(option) for option in _LIMITS)
    return min((_batched_tokens(engine), *(limit for limit in limits if limit is not None and limit > 0)))


def _batched_tokens(engine: EngineSpec) -> int:
    step = engine.extra_args.number(STEP)
    if step is not None and step > 0:
        return step
    twice = 2 if engine.extra_args.value("--performance-mode") == "throughput" else 1
    if engine.device is Device.CPU:
        return _CPU_STEP_TOKENS * engine.tensor_parallel_size * twice
    memory_bytes = 0 if engine.gpu in A100 else engine.gpu_bytes
    if memory_bytes is None:
        return _HOPPER_STEP_TOKENS * twice
    return twice * next(tokens for least, tokens in _STEP_TOKENS if memory_bytes >= least)
