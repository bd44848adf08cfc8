"""What fits each tier: bytes as the backend takes them, and the tokens that really fit."""

from dataclasses import replace
from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device, EngineSpec
from kvtier_operator.planning.backends.kept_states import kept_bytes
from kvtier_operator.planning.base.tier_plan import BackendPlan, TierPlan, TiersPlan
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import GIB, round_down, round_up
from kvtier_operator.planning.weights.device_weights import adapter_bytes, rank_weights

CPU_DEVICE_KV_CACHE_BYTES: Final = 4 * GIB
"""Device cache of one rank on device cpu where spec.engine.kvCacheMemory is empty, as that field says."""

GPU_MEMORY_UTILIZATION: Final = 0.92
"""vLLM's default (0.32: config/cache.py, gpu_memory_utilization)."""

ACTIVATION_RESERVE_BYTES: Final = 4 * GIB
"""What vLLM keeps of a GPU beside weights and KV cache: the activation peak of its profiling run, CUDA
graphs and NCCL (v1/worker/gpu_worker.py, determine_available_memory). It depends on model and batch; an
allowance for planning, corrected after start by `vllm:cache_config_info`."""


def plan_tiers(spec: Spec, geometry: Geometry, backend: BackendPlan) -> TiersPlan:
    """Sizes and tokens of every tier of one engine pod.

    A tier holds whole chunks: vLLM 0.32 takes `cpu_bytes // round_up(bytes of a chunk, page size)` of them
    (v1/kv_offload/cpu/spec.py), LMCache aligns each to 4 KiB (local_cpu.pinned_align_bytes).

    Args:
        spec: What is wanted.
        geometry: KV geometry of one engine.
        backend: What the backend takes of each tier.
    """
    device = _gpu_tier(spec, geometry)
    by_tier = {} if device is None else {Tier.GPU: device}
    for tier, wanted in spec.tiers.by_tier().items():
        bytes_per_rank = backend.bytes_per_rank.get(tier, 0)
        if bytes_per_rank or tier is Tier.CPU:
            whole = TierPlan(
                capacity_bytes=wanted.capacity.bytes,
                bytes_per_rank=bytes_per_rank,
                tokens=_tokens(tier, bytes_per_rank, spec, geometry, backend),
                hugepages=backend.hugepages if tier is Tier.CPU else None,
            )
            by_tier[tier] = _less_states(whole, spec, geometry, backend)
    return TiersPlan(by_tier)


def prefix_tokens(spec: Spec, geometry: Geometry) -> int | None:
    """Tokens of one prefix that the workload comes back to; None where nothing tells it."""
    longest = spec.engine.max_model_len or geometry.shape.max_position_tokens
    tokens = spec.tiers.cpu.expected_prefix_tokens or longest
    return None if tokens is None else max(tokens, geometry.block_tokens)  # shorter ones are not cached


def tier_notes(spec: Spec, geometry: Geometry) -> tuple[str, ...]:
    """What a reader of the report should know of the tiers' tokens."""
    if spec.tiers.cpu.expected_prefix_tokens is None or geometry.bytes_per_prefix:
        return ()
    why = "of this model the tiers keep tokens alone, and no window or state of each prefix"
    return (f"spec.tiers.cpu.expectedPrefixTokens changes nothing: {why}; leave it out",)


def chunk_bytes(geometry: Geometry, backend: BackendPlan) -> int:
    """Bytes of one chunk in the CPU tier, all ranks of one engine."""
    return round_up(_kept(geometry, backend), backend.chunk_alignment_bytes)


def _kept(geometry: Geometry, backend: BackendPlan) -> int:
    return backend.bytes_per_chunk or geometry.kv_bytes_per_token * backend.tokens_per_chunk


def _tokens(tier: Tier, bytes_per_rank: int, spec: Spec, geometry: Geometry, backend: BackendPlan) -> int:
    """Tokens of whole chunks, all engines of the pod together."""
    if tier is Tier.DISK and backend.disk_chunks is not None:
        chunks = backend.disk_chunks.chunks
    else:
        one_chunk = chunk_bytes(geometry, backend) if tier is Tier.CPU else _kept(geometry, backend)
        chunks = bytes_per_rank * spec.engine.tensor_parallel_size // one_chunk
    return chunks * backend.tokens_per_chunk * spec.engine.data_parallel_size


def without_states(
    tier: TierPlan, spec: Spec, geometry: Geometry, chunk_tokens: int, backend: BackendPlan | None = None
) -> TierPlan:
    """The tier less what it keeps of each prefix beside its tokens; prefixes of one length fill it.

    The device keeps windows and states as a tier does: blocks that no hit needs are the first to go
    (vLLM, v1/core/single_type_kv_cache_manager.py, cache_blocks asks reachable_block_mask).

    Args:
        tier: What it holds where nothing is kept beside the tokens.
        spec: What is wanted.
        geometry: KV geometry of one engine.
        chunk_tokens: What it holds whole ones of, in each engine.
        backend: Whose tier it is; None for the device.
    """
    tokens = prefix_tokens(spec, geometry)
    if not geometry.bytes_per_prefix or tokens is None:
        return tier
    of_tokens = tokens * geometry.kv_bytes_per_token
    whole = chunk_tokens * spec.engine.data_parallel_size
    beside = kept_bytes(tokens, spec, geometry, backend)
    left = round_down(tier.tokens * of_tokens // (of_tokens + beside), whole)
    return replace(tier, tokens=left, states_tokens=tier.tokens - left)


def _less_states(tier: TierPlan, spec: Spec, geometry: Geometry, backend: BackendPlan) -> TierPlan:
    if backend.bytes_per_chunk is not None:
        return tier
    return without_states(tier, spec, geometry, backend.tokens_per_chunk, backend)


def _gpu_tier(spec: Spec, geometry: Geometry) -> TierPlan | None:
    engine = spec.engine
    rank_bytes = device_cache_bytes(spec, geometry)
    if rank_bytes is None:
        return None
    blocks = rank_bytes // (geometry.kv_bytes_per_token_per_rank * geometry.block_tokens)
    tier = TierPlan(
        capacity_bytes=rank_bytes * engine.tensor_parallel_size * engine.data_parallel_size,
        bytes_per_rank=rank_bytes,
        tokens=blocks * geometry.block_tokens * engine.data_parallel_size,
    )
    return without_states(tier, spec, geometry, geometry.block_tokens)


def device_cache_bytes(spec: Spec, geometry: Geometry) -> int | None:
    """The device's own KV cache, one rank; None where nothing tells it, 0 where the weights leave nothing.

    What is left of an allowance tells nothing either: the engine says how much it needs.
    """
    engine, adapters = spec.engine, adapter_bytes(spec, geometry)
    if engine.kv_cache_memory:
        return engine.kv_cache_memory.bytes
    if engine.device is Device.CPU:
        return CPU_DEVICE_KV_CACHE_BYTES
    usable, weights = usable_bytes(engine), rank_weights(engine, geometry)
    if usable is None or weights is None or adapters is None:
        return None
    if usable <= weights.least_bytes:
        return 0
    left = usable - weights.most_bytes - adapters.gpu - ACTIVATION_RESERVE_BYTES
    return left if weights.known and left > 0 else None


def usable_bytes(engine: EngineSpec) -> int | None:
    """What vLLM takes of a GPU; None where nothing tells its size."""
    if engine.gpu_memory is None:
        return None
    return int(engine.gpu_memory.bytes * (engine.gpu_memory_utilization or GPU_MEMORY_UTILIZATION))
