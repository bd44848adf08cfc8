"""What fits each tier: bytes as the backend takes them, tokens as planned, and as a running engine says."""

from dataclasses import replace
from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device, EngineSpec
from kvtier_operator.planning.backends.kept_states import kept_bytes
from kvtier_operator.planning.base.tier_plan import BackendPlan, TierPlan, TiersPlan
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.observed import EngineTokens
from kvtier_operator.planning.tiers import traits_of_tier
from kvtier_operator.planning.units import GIB, round_down, round_up, size
from kvtier_operator.planning.weights.device_weights import adapter_bytes, rank_weights

CPU_DEVICE_KV_CACHE_BYTES: Final = 4 * GIB
"""Device cache of one rank on device cpu where spec.engine.kvCacheMemory is empty, as that field says."""

GPU_MEMORY_UTILIZATION: Final = 0.92
"""vLLM's default (0.32: config/cache.py, gpu_memory_utilization)."""

ACTIVATION_RESERVE_BYTES: Final = 4 * GIB
"""What vLLM keeps of a GPU beside weights and KV cache: the activation peak of its profiling run, CUDA
graphs and NCCL (v1/worker/gpu_worker.py, determine_available_memory). It depends on model and batch; an
allowance for planning, corrected after start by `vllm:cache_config_info`."""
TOLERANCE: Final = 0.05
"""By how much a tier may differ from its plan before the picker's capacities follow: a picker that restarts
with a new configuration has forgotten its index."""
_MOST_TIMES: Final = 2
"""A tier may hold so many times the tokens planned: a hybrid model's may cost less than planned."""
_LEAST_BLOCK_TOKENS: Final = 16
_MOST_BLOCK_TOKENS: Final = 1 << 16
_SMALLER_BLOCK: Final = 4
"""By how much another GPU's block may be smaller than planned: 16 tokens in place of 64. A picker's index has
an entry for each block of a tier."""
_LARGEST_DEVICE_BYTES: Final = 512 * GIB
"""More than any device has; what bounds a device cache whose size nothing told before its engine ran."""


def plan_tiers(spec: Spec, geometry: Geometry, backend: BackendPlan) -> TiersPlan:
    """Sizes and tokens of every tier of one engine pod.

    A tier holds whole chunks: vLLM 0.32 takes `cpu_bytes // round_up(bytes of a chunk, page size)` of them
    (v1/kv_offload/cpu/spec.py), LMCache aligns each to 4 KiB (local_cpu.pinned_align_bytes).
    """
    device = _gpu_tier(spec, geometry)
    by_tier = {} if device is None else {Tier.GPU: device}
    for tier, wanted in spec.tiers.by_tier().items():
        bytes_per_rank = backend.bytes_per_rank[tier]
        in_memory = traits_of_tier(tier).in_memory
        if bytes_per_rank or in_memory or tier.shared:
            whole = TierPlan(
                capacity_bytes=wanted.capacity.bytes,
                bytes_per_rank=bytes_per_rank,
                tokens=_tokens(tier, bytes_per_rank, spec, geometry, backend),
                hugepages=backend.hugepages if in_memory else None,
            )
            by_tier[tier] = (
                without_states(whole, spec, geometry, backend.tokens_per_chunk, backend)
                if backend.bytes_per_chunk is None
                else whole
            )
    return TiersPlan(by_tier)


def prefix_tokens(spec: Spec, geometry: Geometry) -> int | None:
    """Tokens of one prefix that the workload comes back to; None where nothing tells it."""
    longest = geometry.longest_tokens(spec.engine)
    tokens = spec.tiers.cpu.expected_prefix_tokens or longest
    return None if tokens is None else max(tokens, geometry.block_tokens)  # shorter ones are not cached


def tier_notes(spec: Spec, geometry: Geometry) -> tuple[str, ...]:
    """What a reader of the report should know of the tiers' tokens."""
    if spec.tiers.cpu.expected_prefix_tokens is None or geometry.bytes_per_prefix:
        return ()
    why = "of this model the tiers keep tokens alone, and no window or state of each prefix"
    return (f"spec.tiers.cpu.expectedPrefixTokens changes nothing: {why}; leave it out",)


def gpu_notes(engine: EngineSpec) -> tuple[str, ...]:
    """What is taken of a GPU that the resource names."""
    if (gpu := engine.gpu) is None:
        return ()
    note = (
        f"gpu {gpu} is planned with {size(gpu.memory_bytes)} at {gpu.memory_bytes_per_s / 1e12:g} TB/s, "
        f"{gpu.link_bytes_per_s / 1e9:g} GB/s to the host each way and {gpu.flops / 1e12:g} TFLOP/s of dense "
        "bf16: ceilings of a data sheet, which an engine's own memory and `kvtier bench` replace"
    )
    return (note,)


def chunk_bytes(geometry: Geometry, backend: BackendPlan) -> int:
    """Bytes of one chunk in the CPU tier, all ranks of one engine."""
    return round_up(_kept(geometry, backend), backend.chunk_alignment_bytes)


def _kept(geometry: Geometry, backend: BackendPlan) -> int:
    return backend.bytes_per_chunk or geometry.kv_bytes_per_token * backend.tokens_per_chunk


def _tokens(tier: Tier, bytes_per_rank: int, spec: Spec, geometry: Geometry, backend: BackendPlan) -> int:
    """Tokens of whole chunks, all engines of the pod together; what engines share is there once."""
    if tier in backend.chunks:
        chunks = backend.chunks[tier].chunks
    else:
        in_memory = traits_of_tier(tier).in_memory
        one_chunk = chunk_bytes(geometry, backend) if in_memory else _kept(geometry, backend)
        chunks = bytes_per_rank * spec.engine.tensor_parallel_size // one_chunk
    engines = 1 if tier.shared else spec.engine.data_parallel_size
    return chunks * backend.tokens_per_chunk * engines


def without_states(
    tier: TierPlan, spec: Spec, geometry: Geometry, chunk_tokens: int, backend: BackendPlan | None = None
) -> TierPlan:
    """The tier less what it keeps of each prefix beside its tokens; without a backend, the device's own.

    The device keeps windows and states as a tier does: blocks that no hit needs are the first to go
    (vLLM, v1/core/single_type_kv_cache_manager.py, cache_blocks asks reachable_block_mask).
    """
    tokens = prefix_tokens(spec, geometry)
    if not geometry.bytes_per_prefix or tokens is None:
        return tier
    of_tokens = tokens * geometry.kv_bytes_per_token
    whole = chunk_tokens * spec.engine.data_parallel_size
    beside = kept_bytes(tokens, spec, geometry, backend)
    left = round_down(tier.tokens * of_tokens // (of_tokens + beside), whole)
    return replace(tier, tokens=left, states_tokens=tier.tokens - left)


def _gpu_tier(spec: Spec, geometry: Geometry) -> TierPlan | None:
    engine = spec.engine
    rank_bytes = device_cache_bytes(spec, geometry)
    if rank_bytes is None:
        return None
    blocks = rank_bytes // (geometry.kv_bytes_per_token_per_rank * geometry.block_tokens)
    tier = TierPlan(
        capacity_bytes=rank_bytes * engine.ranks,
        bytes_per_rank=rank_bytes,
        tokens=blocks * geometry.block_tokens * engine.data_parallel_size,
    )
    return without_states(tier, spec, geometry, geometry.block_tokens)


def device_cache_bytes(spec: Spec, geometry: Geometry) -> int | None:
    """The device's own KV cache, one rank; None where nothing tells it, 0 where the weights leave nothing.

    What is left of an allowance tells nothing either: the engine says how much it needs.
    """
    engine, adapters = spec.engine, adapter_bytes(spec, geometry)
    media = media_bytes(engine, geometry)
    if engine.kv_cache_memory:
        return max(0, engine.kv_cache_memory.bytes - media)
    if engine.device is Device.CPU:
        return CPU_DEVICE_KV_CACHE_BYTES
    usable, weights = usable_bytes(engine), rank_weights(engine, geometry)
    if usable is None or weights is None or adapters is None:
        return None
    if usable <= weights.least_bytes:
        return 0
    left = usable - weights.most_bytes - adapters.gpu - media - ACTIVATION_RESERVE_BYTES
    return left if weights.known and left > 0 else None


MEDIA_GIB: Final = "--mm-ipc-gpu-memory-gb"


def media_bytes(engine: EngineSpec, geometry: Geometry) -> int:
    """What vLLM takes off a rank's KV cache for frames on their way, of a model that takes media.

    Source: vllm/multimodal/gpu_ipc_memory.py, reserve_mm_ipc_gpu_memory, 0.32 and 0.33.
    """
    shape = geometry.shape
    if engine.device is Device.CPU or not (shape.media or shape.images_both_ways):
        return 0
    return int((engine.extra_args.amount(MEDIA_GIB) or 0) * GIB)


def usable_bytes(engine: EngineSpec) -> int | None:
    """What vLLM takes of a GPU; None where nothing tells its size."""
    if engine.gpu_bytes is None:
        return None
    return int(engine.gpu_bytes * (engine.gpu_memory_utilization or GPU_MEMORY_UTILIZATION))


def most_tokens(tiers: TiersPlan, geometry: Geometry, ranks: int) -> EngineTokens:
    """The most tokens that a plan can justify; what says more is wrong, or means harm."""
    most = {tier: _most(planned, geometry) for tier, planned in tiers.by_tier.items()}
    most[Tier.GPU] = ranks * _LARGEST_DEVICE_BYTES // max(geometry.kv_bytes_per_token, 1)
    return EngineTokens(
        most, gpu_blocks=_SMALLER_BLOCK * ranks * _LARGEST_DEVICE_BYTES // max(geometry.block_bytes, 1)
    )


def _most(tier: TierPlan, geometry: Geometry) -> int:
    """Of a tier; on a GPU that keeps tokens smaller it holds more of them."""
    least = min(geometry.kv_bytes_per_token_by_gpu, default=geometry.kv_bytes_per_token)
    return _MOST_TIMES * tier.held_tokens * geometry.kv_bytes_per_token // max(least, 1)


def most_pinned_bytes(tiers: TiersPlan, ranks: int) -> int:
    """The same of bytes locked in memory; each rank's are whole pages, of 1 GiB at most."""
    return _MOST_TIMES * tiers.cpu.capacity_bytes + ranks * GIB


def why_not_believed(reported: EngineTokens, most: EngineTokens) -> str:
    """What an engine says of its tiers and no plan can justify, in words; empty where there is nothing."""
    sizes = [
        ("tokens", tier, reported.by_tier[tier], most.by_tier.get(tier, 0))
        for tier in Tier
        if tier in reported.by_tier
    ]
    if reported.gpu_blocks is not None:
        sizes.append(("blocks", Tier.GPU, reported.gpu_blocks, most.gpu_blocks or 0))
    return ", ".join(
        f"{number} {what} in tier {tier.label}, {limit} at most"
        for what, tier, number, limit in sorted(sizes, key=lambda told: told[1])
        if not 0 <= number <= limit
    )


def _if_plausible(reported: EngineTokens | None, most: EngineTokens) -> EngineTokens | None:
    return None if reported is None or why_not_believed(reported, most) else reported


def correct_tiers(
    spec: Spec, tiers: TiersPlan, geometry: Geometry, engine: EngineTokens | None, most: EngineTokens
) -> TiersPlan:
    """The tiers with what an engine says of them; the plan's own figures stay beside it.

    What no plan can justify is not taken, whoever remembers it: an earlier operator's status, too.
    """
    engine = _if_plausible(engine, most)
    engine = engine and _if_plausible(_with_whole_device(engine, geometry), most)
    if engine is None:
        return tiers
    by_tier = dict(tiers.by_tier)
    if Tier.GPU not in by_tier and Tier.GPU in engine.by_tier:
        tokens = engine.by_tier[Tier.GPU]  # of a device cache whose size nothing told before its engine ran
        device = TierPlan(
            capacity_bytes=tokens * geometry.kv_bytes_per_token,
            bytes_per_rank=tokens * geometry.kv_bytes_per_token_per_rank,
            tokens=tokens,
        )
        by_tier = {Tier.GPU: without_states(device, spec, geometry, geometry.block_tokens), **by_tier}
    return TiersPlan(
        {
            tier: replace(planned, observed_tokens=engine.by_tier.get(tier))
            for tier, planned in by_tier.items()
        },
        observed_block_tokens=_plausible_block(engine.block, geometry),
    )


def differs(tokens: int, from_tokens: int) -> bool:
    """Whether a size is off another by more than the tolerance."""
    return abs(tokens - from_tokens) > TOLERANCE * from_tokens


def picker_tokens(tier: TierPlan) -> int:
    """Tokens that the picker is told a tier holds: those planned, unless the engine has clearly others."""
    observed = tier.observed_tokens
    if observed is None or not differs(observed, tier.held_tokens):
        return tier.tokens
    return observed * tier.tokens // max(tier.held_tokens, 1)


def _plausible_block(tokens: int | None, geometry: Geometry) -> int | None:
    least = max(_LEAST_BLOCK_TOKENS, geometry.block_tokens // _SMALLER_BLOCK)
    return tokens if tokens is not None and least <= tokens <= _MOST_BLOCK_TOKENS else None


def _with_whole_device(engine: EngineTokens, geometry: Geometry) -> EngineTokens:
    """What the device's blocks would hold of tokens alone, as a plan counts them before windows and states.

    vLLM's own number of tokens leaves out what one longest sequence and the steps under way take of them
    (v1/core/kv_cache_utils.py, get_kv_cache_capacity), which is more than what cached prefixes keep.
    """
    if not geometry.bytes_per_prefix or not geometry.block_bytes or engine.gpu_blocks is None:
        return engine
    block = _plausible_block(engine.block, geometry) or geometry.block_tokens
    block_bytes = geometry.block_bytes * block // geometry.block_tokens
    tokens = engine.gpu_blocks * block_bytes // geometry.kv_bytes_per_token_per_rank
    return replace(engine, by_tier={**engine.by_tier, Tier.GPU: tokens})
