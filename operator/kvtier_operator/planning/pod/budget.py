"""One memory and disk budget for the engine pod, and what each part of it is for."""

from collections.abc import Mapping
from typing import Final

from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.backends.backend_plan import BackendPlan
from kvtier_operator.planning.kv_cache.geometry import Geometry
from kvtier_operator.planning.pod.budget_plan import Budget, BudgetLine
from kvtier_operator.planning.pod.devices import engine_devices, without_cuda
from kvtier_operator.planning.pod.storage import EPHEMERAL_STORAGE, plan_storage, storage_bytes, tier_bytes
from kvtier_operator.planning.tiers.capacity import CPU_DEVICE_KV_CACHE_BYTES
from kvtier_operator.planning.tiers.tier_plan import TiersPlan
from kvtier_operator.planning.units import GIB, MIB, ceil_div, many, quantity, round_up, size
from kvtier_operator.planning.weights.adapters import AdapterBytes, adapter_bytes
from kvtier_operator.planning.weights.pod_weights import is_brought, moved_weights_bytes, plan_weights

API_SERVER_BYTES: Final = GIB
"""vLLM's API server process: 0.9 GiB resident after importing vLLM 0.32 and torch (measured), and room
for requests."""
CPU_RANK_BYTES: Final = 2 * GIB
"""One CPU rank with its share of the engine core, without weights and cache: the same 0.9 GiB a process,
and activations of a prefill step."""
CUDA_RANK_BYTES: Final = 5 * GIB
"""Host side of one CUDA rank: CUDA context, pinned staging buffers, compiled kernels and one safetensors
shard while loading (shards are written at up to 5 GB: huggingface_hub, split_torch_state_dict_into_shards).
LMCache's operator adds the same 5 GiB to its cache's size."""
ENGINE_SHM_BYTES: Final = GIB
"""Shared memory of an engine beside any tier: message queues of 10 x VLLM_MQ_MAX_CHUNK_BYTES_MB (16) for each
rank (vLLM, distributed/device_communicators/shm_broadcast.py) and NCCL's buffers."""
HEADROOM_DIVISOR: Final = 10
"""A tenth of all but the tier and /dev/shm: working sets are estimates, those two are exact."""
DEVICE_CACHE_LINE: Final = "device KV cache"
"""Of the pod's memory, where vLLM computes on the CPU."""

PIN_S_PER_GIB: Final = 0.56
"""Slow end of what is reported for taking and page-locking memory: 0.1 s (vLLM #51080) to 0.56 s a GiB."""
LOAD_BYTES_PER_S: Final = 200 * MIB
"""Weights over a network into an empty page cache; a local NVMe is ten times faster."""
START_S: Final = 300
"""Imports, profiling, torch.compile and CUDA graphs of a first start with an empty compile cache."""
UNKNOWN_WEIGHTS_LOAD_S: Final = 900
"""Allowance where the size of the weights is not known; llm-d's guide allows 3,615 s for all of the start."""


def plan_budget(spec: Spec, geometry: Geometry, tiers: TiersPlan, backend: BackendPlan) -> Budget:
    """The engine container's memory line by line, its other resources, and how long a start may take."""
    shm_bytes = spec.engine.shm_size.bytes if spec.engine.shm_size else backend.shm_bytes + ENGINE_SHM_BYTES
    memory = _memory_lines(spec, geometry, backend, shm_bytes)
    limit = quantity(sum(line.bytes for line in memory))
    resources = spec.engine.resources
    extra = engine_devices(spec) | _hugepages(backend)
    storage = plan_storage(
        spec, backend.mounts, plan_weights(spec, geometry), moved_weights_bytes(spec, geometry)
    )
    return Budget(
        memory=memory,
        storage=storage,
        requests=_text(resources.requests) | extra | _storage_request(storage) | {"memory": limit},
        limits=_text(resources.limits) | extra | _storage_limit(spec, storage) | {"memory": limit},
        shm_bytes=shm_bytes,
        fetch_s=load_s(geometry) if is_brought(spec) else 0,
        startup_s=START_S + load_s(geometry) + pin_s(spec, tiers) + read_s(backend),
    )


def _memory_lines(
    spec: Spec, geometry: Geometry, backend: BackendPlan, shm_bytes: int
) -> tuple[BudgetLine, ...]:
    ranks = spec.engine.tensor_parallel_size * spec.engine.data_parallel_size
    working = _working_set(spec, geometry, ranks)
    overhead = BudgetLine(
        "backend's own",
        backend.per_rank_overhead_bytes * ranks,
        f"{many(ranks, 'rank')} x {size(backend.per_rank_overhead_bytes)}: index, buffers and threads",
    )
    elastic = sum(line.bytes for line in working) + overhead.bytes
    tier = "CPU tier, page-locked" if backend.page_locked else "CPU tier"
    tier_shm = min(backend.shm_bytes, shm_bytes)
    fixed = (
        BudgetLine(tier, backend.tier_memory_bytes, "spec.tiers.cpu.capacity in each rank's share"),
        BudgetLine("CPU tier in /dev/shm", tier_shm, "spec.tiers.cpu.capacity, where this backend keeps it"),
        BudgetLine("rest of /dev/shm", shm_bytes - tier_shm, _shm_why(spec)),
    )
    lines = [line for line in (*working, *fixed, overhead) if line.bytes]
    without = sum(line.bytes for line in lines)
    headroom = round_up(without + max(GIB, ceil_div(elastic, HEADROOM_DIVISOR)), MIB) - without
    lines.append(
        BudgetLine(
            "headroom", headroom, "a tenth of all but the tier and /dev/shm, at least 1 GiB, to a whole MiB"
        )
    )
    return tuple(lines)


def _shm_why(spec: Spec) -> str:
    if spec.engine.shm_size:
        return "spec.engine.shmSize without the tier"
    return "message queues between vLLM's processes, NCCL"


def _working_set(spec: Spec, geometry: Geometry, ranks: int) -> tuple[BudgetLine, ...]:
    """The engine without tiers: as the resource says, or computed."""
    given = spec.engine.resources.limits.get("memory") or spec.engine.resources.requests.get("memory")
    if given is not None:
        where = "limits" if "memory" in spec.engine.resources.limits else "requests"
        return (BudgetLine("engine working set", parse_bytes(given), f"{given} of resources.{where}.memory"),)
    adapters = _adapters(spec, geometry, ranks)
    server = BudgetLine("API server", API_SERVER_BYTES, f"{size(API_SERVER_BYTES)}: vLLM and torch, resident")
    if spec.engine.device is Device.CUDA:
        context = "device's" if without_cuda(spec) else "CUDA"
        why = f"{many(ranks, 'rank')} x {size(CUDA_RANK_BYTES)}: {context} context, staging, loading shards"
        return (server, BudgetLine("engine processes", CUDA_RANK_BYTES * ranks, why), adapters)
    cache = spec.engine.kv_cache_memory.bytes if spec.engine.kv_cache_memory else CPU_DEVICE_KV_CACHE_BYTES
    default = "" if spec.engine.kv_cache_memory else ", its default"
    weights, engines = geometry.weights_bytes or 0, spec.engine.data_parallel_size
    return (
        server,
        BudgetLine(
            "engine processes",
            CPU_RANK_BYTES * ranks,
            f"{many(ranks, 'rank')} x {size(CPU_RANK_BYTES)}: vLLM, torch, activations",
        ),
        BudgetLine(
            "model weights", weights * engines, f"{many(engines, 'engine')} x {size(weights)} on device cpu"
        ),
        BudgetLine(
            DEVICE_CACHE_LINE,
            cache * ranks,
            f"{many(ranks, 'rank')} x {size(cache)} of kvCacheMemory{default}, in memory on device cpu",
        ),
        adapters,
    )


def _adapters(spec: Spec, geometry: Geometry, ranks: int) -> BudgetLine:
    """Copies of LoRA adapters in each rank; on device cpu the room of those in a batch, too."""
    taken = adapter_bytes(spec, geometry) or AdapterBytes(0, 0)
    each = taken.host + (taken.gpu if spec.engine.device is Device.CPU else 0)
    return BudgetLine(
        "LoRA adapters", each * ranks, f"{many(ranks, 'rank')} x {size(each)}: copies of each adapter"
    )


def _hugepages(backend: BackendPlan) -> dict[str, str]:
    """Requests equal limits, as Kubernetes demands of huge pages."""
    pages = backend.hugepages
    if pages is None or not pages.pages:
        return {}
    return {f"hugepages-{quantity(pages.page_bytes)}": quantity(pages.bytes)}


def _storage_request(storage: tuple[BudgetLine, ...]) -> dict[str, str]:
    return {EPHEMERAL_STORAGE: quantity(storage_bytes(storage))} if storage else {}


def _storage_limit(spec: Spec, storage: tuple[BudgetLine, ...]) -> dict[str, str]:
    """A limit only where the resource has one, which is the engine's without the tier."""
    own = spec.engine.resources.limits.get(EPHEMERAL_STORAGE)
    return {} if own is None else {EPHEMERAL_STORAGE: quantity(parse_bytes(own) + tier_bytes(storage))}


def load_s(geometry: Geometry) -> int:
    """Seconds to load the weights, or the allowance where their size is not known."""
    weights = geometry.weights_bytes
    return UNKNOWN_WEIGHTS_LOAD_S if weights is None else ceil_div(weights, LOAD_BYTES_PER_S)


def pin_s(spec: Spec, tiers: TiersPlan) -> int:
    """Seconds to take the CPU tier of all ranks, and to page-lock it."""
    ranks = spec.engine.tensor_parallel_size * spec.engine.data_parallel_size
    return ceil_div(int(tiers.cpu.bytes_per_rank * ranks * PIN_S_PER_GIB), GIB)


def read_s(backend: BackendPlan) -> int:
    """Seconds to read the disk tier's index, where the backend keeps one; all engines do so at once."""
    return backend.disk_chunks.read_s if backend.disk_chunks else 0


def _text(resources: Mapping[str, str | int]) -> dict[str, str]:
    return {name: str(value) for name, value in resources.items()}
