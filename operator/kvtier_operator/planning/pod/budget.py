"""Memory, disk and CPU of an engine's pod, line by line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.quantity import parse_bytes, parse_quantity
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.pod import ResourceRequirements
from kvtier_operator.planning.base.container_parts import Mount
from kvtier_operator.planning.base.devices import engine_devices
from kvtier_operator.planning.base.node import CPU
from kvtier_operator.planning.base.tier_plan import BackendPlan, TiersPlan
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.pod.engine_cpu import CpuLine, cpu_quantity, engine_cpu
from kvtier_operator.planning.pod.engine_memory import BudgetLine, engine_memory, options_in_shm
from kvtier_operator.planning.pod.kept import kept_start_s
from kvtier_operator.planning.units import GIB, MIB, ceil_div, many, quantity, round_up, size
from kvtier_operator.planning.weights.pod_weights import (
    SourceKind,
    is_brought,
    model_source,
    moved_weights_bytes,
    plan_weights,
    weights_volume_bytes,
)

EPHEMERAL_STORAGE: Final = "ephemeral-storage"
LOGS_AND_SCRATCH_BYTES: Final = GIB
"""Logs, the container's writable layer and compile caches: an allowance."""
_WEIGHTS_LINES: Final = ("model weights", "beside the weights")
_OWN_LINE: Final = "the engine's own"
_LOGS_LINE: Final = "logs and scratch"
_DISK_LINES: Final = ("disk tier", "beside the disk tier")


@dataclass(frozen=True, slots=True)
class Budget:
    """The pod's resources."""

    # the lines whose sum is the memory limit. Explicit huge pages are not among them: the kernel
    # accounts them apart
    memory: tuple[BudgetLine, ...]
    # the lines whose sum is the request for the node's own disk; empty where there is none
    storage: tuple[BudgetLine, ...]
    # the lines whose sum is the request for CPU; empty where the resource has one, or needs none
    cpu: tuple[CpuLine, ...]
    requests: Mapping[str, str]  # the engine pod's requests, as quantities
    limits: Mapping[str, str]  # its limits
    shm_bytes: int  # size of /dev/shm
    needed_shm_bytes: int  # of it, what the tier and vLLM's options keep there
    # seconds until the engine must be ready: loading weights, taking the tier's memory, reading the
    # disk's index and what was used last, computing prefixes
    startup_s: int
    fetch_s: int = 0  # seconds before that, until the weights are there: by a fetcher, or in an image


@dataclass(frozen=True, slots=True)
class Compute:
    """Of one container."""

    requests: Mapping[str, str]  # as quantities
    limits: Mapping[str, str]  # as quantities


def compute(own: Compute, asked: ResourceRequirements) -> Compute:
    """What is asked for stands; what is left open stays within it.

    A limit below kvtier's request lowers that, a request above kvtier's limit raises it. The API sees to it
    that the author's own two agree.
    """
    requests = {**own.requests, **{name: str(size) for name, size in asked.requests.items()}}
    limits = {**own.limits, **{name: str(size) for name, size in asked.limits.items()}}
    for name in requests.keys() & limits.keys():
        if parse_quantity(requests[name]) <= parse_quantity(limits[name]):
            continue
        if name in asked.requests:
            limits[name] = requests[name]
        else:
            requests[name] = limits[name]
    return Compute(requests, limits)


ENGINE_SHM_BYTES: Final = GIB
"""Shared memory of an engine beside any tier: message queues of 10 x VLLM_MQ_MAX_CHUNK_BYTES_MB (16) for each
rank (vLLM, distributed/device_communicators/shm_broadcast.py) and NCCL's buffers."""
HEADROOM_DIVISOR: Final = 10
"""A tenth of all but the tier and /dev/shm: working sets are estimates, those two are exact."""
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
    options_shm = options_in_shm(spec.engine, geometry)
    needed_shm_bytes = backend.shm_bytes + sum(line.bytes for line in options_shm)
    shm_bytes = spec.engine.shm_size.bytes if spec.engine.shm_size else needed_shm_bytes + ENGINE_SHM_BYTES
    memory = _memory_lines(spec, geometry, backend, shm_bytes, options_shm)
    limit = quantity(sum(line.bytes for line in memory))
    resources = spec.engine.resources
    extra = engine_devices(spec) | _hugepages(backend)
    cpu = engine_cpu(spec, geometry)
    storage = plan_storage(
        spec, backend.mounts, plan_weights(spec, geometry), moved_weights_bytes(spec, geometry)
    )
    return Budget(
        memory=memory,
        storage=storage,
        cpu=cpu,
        requests=_cpu_request(cpu)
        | _text(resources.requests)
        | extra
        | _storage_request(storage)
        | {"memory": limit},
        limits=_text(resources.limits) | extra | _storage_limit(spec, storage) | {"memory": limit},
        shm_bytes=shm_bytes,
        needed_shm_bytes=needed_shm_bytes,
        fetch_s=load_s(geometry) if is_brought(spec) else 0,
        startup_s=START_S + load_s(geometry) + pin_s(spec, tiers) + read_s(backend) + kept_start_s(spec),
    )


def _memory_lines(
    spec: Spec,
    geometry: Geometry,
    backend: BackendPlan,
    shm_bytes: int,
    options_shm: tuple[BudgetLine, ...],
) -> tuple[BudgetLine, ...]:
    ranks = spec.engine.ranks
    tier_shm_bytes = min(backend.shm_bytes, shm_bytes)
    working = engine_memory(spec, geometry, backend.tier_memory_bytes + tier_shm_bytes)
    overhead = BudgetLine(
        "backend's own",
        backend.per_rank_overhead_bytes * ranks,
        f"{many(ranks, 'rank')} x {size(backend.per_rank_overhead_bytes)}: index, buffers and threads",
    )
    elastic = sum(line.bytes for line in working) + overhead.bytes
    in_shm = sum(line.bytes for line in options_shm)
    tier = "CPU tier, page-locked" if backend.page_locked else "CPU tier"
    fixed = (
        BudgetLine(tier, backend.tier_memory_bytes, "spec.tiers.cpu.capacity in each rank's share"),
        BudgetLine(
            "CPU tier in /dev/shm", tier_shm_bytes, "spec.tiers.cpu.capacity, where this backend keeps it"
        ),
        *options_shm,
        BudgetLine("rest of /dev/shm", max(0, shm_bytes - tier_shm_bytes - in_shm), _shm_why(spec)),
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


def _hugepages(backend: BackendPlan) -> dict[str, str]:
    """Requests equal limits, as Kubernetes demands of huge pages."""
    pages = backend.hugepages
    if pages is None or not pages.pages:
        return {}
    return {f"hugepages-{quantity(pages.page_bytes)}": quantity(pages.bytes)}


def _cpu_request(lines: tuple[CpuLine, ...]) -> dict[str, str]:
    """A request and no limit: what is free on the node is had all the same."""
    return {CPU: cpu_quantity(lines)} if lines else {}


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
    return ceil_div(int(tiers.cpu.bytes_per_rank * spec.engine.ranks * PIN_S_PER_GIB), GIB)


def read_s(backend: BackendPlan) -> int:
    """Seconds to read a tier's index, where the backend keeps one; all engines do so at once."""
    return max((chunks.read_s for chunks in backend.chunks.values()), default=0)


def _text(resources: Mapping[str, str | int]) -> dict[str, str]:
    return {name: str(value) for name, value in resources.items()}


def plan_storage(
    spec: Spec, disk: Iterable[Mount], weights: Mount | None, moved_bytes: int = 0
) -> tuple[BudgetLine, ...]:
    """The lines whose sum the pod requests; none where nothing is known that is worth a request.

    Args:
        spec: What is wanted.
        disk: Volumes of the disk tier.
        weights: Volume of the model's weights.
        moved_bytes: Weights that are downloaded beside any volume.
    """
    tier = _lines(
        disk, _DISK_LINES, "spec.tiers.disk.capacity", "a tenth: what a filesystem keeps for itself"
    )
    if own := _own_line(spec):
        return (own, *tier)
    downloaded = _lines(
        (weights,) if weights else (),
        _WEIGHTS_LINES,
        "each pod downloads them once, for all its engines",
        "a tenth, at least 1 GiB: tokenizer, what a download leaves",
    )
    downloaded += _image(weights) + _moved_weights_lines(moved_bytes)
    if not tier and not downloaded:
        return ()
    logs = BudgetLine(_LOGS_LINE, LOGS_AND_SCRATCH_BYTES, "logs, the writable layer, compile caches")
    return (*downloaded, *tier, logs)


def _image(weights: Mount | None) -> tuple[BudgetLine, ...]:
    """An image that is mounted: the kubelet evicts no pod for it, and the node must have the room."""
    if weights is None or "image" not in weights.source or not weights.payload_bytes:
        return ()
    why = "an image volume, in the node's image store, where pods of one node share it"
    return (BudgetLine(_WEIGHTS_LINES[0], weights.payload_bytes, why),)


def _moved_weights_lines(weights_bytes: int) -> tuple[BudgetLine, ...]:
    """Downloads that the resource's environment puts into the container's writable layer."""
    if not weights_bytes:
        return ()
    names, beside = _WEIGHTS_LINES, weights_volume_bytes(weights_bytes) - weights_bytes
    return (
        BudgetLine(names[0], weights_bytes, "where spec.engine.env moves them, in the container's own layer"),
        BudgetLine(names[1], beside, "a tenth, at least 1 GiB: tokenizer, what a download leaves"),
    )


def storage_bytes(lines: Iterable[BudgetLine]) -> int:
    """What the lines come to."""
    return sum(line.bytes for line in lines)


def without_weights(lines: Iterable[BudgetLine]) -> tuple[BudgetLine, ...]:
    """The lines of a pod that downloads nothing; none where only the allowance would be left."""
    kept = tuple(line for line in lines if line.what not in _WEIGHTS_LINES)
    return kept if any(line.what != _LOGS_LINE for line in kept) else ()


def tier_bytes(lines: Iterable[BudgetLine]) -> int:
    """What of the lines is the disk tier's, which comes on top of the engine's own."""
    return sum(line.bytes for line in lines if line.what in _DISK_LINES)


def _own_line(spec: Spec) -> BudgetLine | None:
    """The engine without tiers, as the resource says."""
    resources = spec.engine.resources
    for where, quantities in (("requests", resources.requests), ("limits", resources.limits)):
        if EPHEMERAL_STORAGE in quantities:
            value = quantities[EPHEMERAL_STORAGE]
            why = f"{value} of resources.{where}.{EPHEMERAL_STORAGE}"
            return BudgetLine(_OWN_LINE, parse_bytes(value), why)
    return None


def _lines(mounts: Iterable[Mount], names: tuple[str, str], *whys: str) -> tuple[BudgetLine, ...]:
    """What emptyDir volumes are to hold, and the rest of their sizeLimit."""
    bounded = [
        (mount.payload_bytes, parse_bytes(mount.source["emptyDir"]["sizeLimit"]))
        for mount in mounts
        if "sizeLimit" in mount.source.get("emptyDir", {})
    ]
    payload = sum(payload for payload, _ in bounded)
    beside = sum(limit for _, limit in bounded) - payload
    lines = zip(names, (payload, beside), whys, strict=True)
    return tuple(BudgetLine(*line) for line in lines) if bounded else ()


def host_folders(spec: Spec) -> tuple[tuple[str, str], ...]:
    """Field and path of each."""
    source = model_source(spec.model)
    read = (("spec.model.source", source.place),) if source and source.kind is SourceKind.NODE else ()
    return (*written_host_folders(spec), *read)


def written_host_folders(spec: Spec) -> tuple[tuple[str, str], ...]:
    """Those that an engine writes to, and so has to be root for."""
    disk = spec.tiers.disk
    extra = disk.extra_volumes if disk else ()
    volumes = (
        ("spec.tiers.disk.volume", disk.volume if disk else None),
        *((f"spec.tiers.disk.extraVolumes[{index}]", volume) for index, volume in enumerate(extra)),
        ("spec.model.volume", spec.model.volume),
    )
    return tuple(
        (f"{field}.hostPath", volume.host_path.path)
        for field, volume in volumes
        if volume is not None and volume.host_path is not None
    )
