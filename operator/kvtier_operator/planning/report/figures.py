"""The numbers of the sizing report, each with how it came about."""

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.backends.kept_states import kept_bytes, retention_tokens
from kvtier_operator.planning.base.ending import plan_ending
from kvtier_operator.planning.base.tier_plan import BackendPlan, TierPlan, TiersPlan
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.model_shape.shape import CATALOGUE
from kvtier_operator.planning.plan import Figure
from kvtier_operator.planning.pod.budget import START_S, Budget, load_s, pin_s, read_s
from kvtier_operator.planning.tiers.capacity import (
    ACTIVATION_RESERVE_BYTES,
    GPU_MEMORY_UTILIZATION,
    chunk_bytes,
    prefix_tokens,
)
from kvtier_operator.planning.units import count, many, size
from kvtier_operator.planning.weights.device_weights import active_parameters, adapter_bytes, rank_weights


def plan_figures(
    spec: Spec, geometry: Geometry, tiers: TiersPlan, backend: BackendPlan, budget: Budget
) -> tuple[Figure, ...]:
    """Every derived number, in the order of the report."""
    return (
        *_geometry_figures(spec, geometry),
        *_device_figures(spec, geometry, tiers),
        *_cpu_figures(spec, geometry, tiers, backend),
        *_disk_figures(spec, geometry, tiers, backend),
        Figure(
            "startup seconds",
            budget.startup_s,
            f"{START_S} s to start + {load_s(geometry)} s to load weights "
            f"+ {pin_s(spec, tiers)} s to take the CPU tier's memory"
            + (f" + {read_s(backend)} s to read the disk's index" if backend.disk_chunks else ""),
        ),
        _drain_figure(spec),
    )


def _drain_figure(spec: Spec) -> Figure:
    ending = plan_ending(spec)
    how = (
        f"for requests under way when the pod has to go; after {ending.pre_stop_s} s in which who sends them "
        f"takes note, and before {ending.exit_s} s to end: {ending.grace_s} s of grace"
    )
    return Figure("drain seconds", ending.drain_s, how)


def _geometry_figures(spec: Spec, geometry: Geometry) -> tuple[Figure, ...]:
    ranks = spec.engine.tensor_parallel_size
    figures = [Figure("KV bytes per token", geometry.kv_bytes_per_token, geometry.how)]
    if ranks > 1:
        how = "the latent, on every rank whole" if geometry.mla else f"of {ranks} ranks"
        figures.append(Figure("KV bytes per token and rank", geometry.kv_bytes_per_token_per_rank, how))
    if geometry.bytes_per_prefix:
        figures.append(
            Figure("bytes per cached prefix", geometry.bytes_per_prefix, _how_often(spec, geometry))
        )
    if geometry.weights_bytes is not None:
        how = f"of one engine, all ranks together; {_weights_source(spec, geometry)}"
        figures.append(Figure("weights bytes", geometry.weights_bytes, how))
    if (computing := active_parameters(geometry)) is not None:
        figures.append(Figure("active parameters", computing.parameters, computing.how))
    return tuple(figures)


def _how_often(spec: Spec, geometry: Geometry) -> str:
    interval = retention_tokens(spec, geometry)
    if interval is None:
        return "windows and states, kept once each"
    return f"windows and states, kept every {count(interval)} tokens and at the end"


def _weights_source(spec: Spec, geometry: Geometry) -> str:
    if spec.model.weights:
        return "spec.model.weights"
    known = geometry.shape.source.startswith(CATALOGUE)
    return "the catalogue" if known else "the weight files beside config.json"


def _device_figures(spec: Spec, geometry: Geometry, tiers: TiersPlan) -> tuple[Figure, ...]:
    engine, gpu = spec.engine, tiers.gpu
    if gpu is None:
        return ()
    if engine.kv_cache_memory or engine.device is Device.CPU:
        how = "spec.engine.kvCacheMemory" if engine.kv_cache_memory else "the default of device cpu"
    else:
        used = engine.gpu_memory_utilization or GPU_MEMORY_UTILIZATION
        memory = size(engine.gpu_memory.bytes) if engine.gpu_memory else "?"
        held, adapters = rank_weights(engine, geometry), adapter_bytes(spec, geometry)
        how = (
            f"{memory} x {used:g} - {size(held.least_bytes if held else 0)} weights "
            f"- {size(ACTIVATION_RESERVE_BYTES)} activations"
            f"{f' - {size(adapters.gpu)} adapters' if adapters and adapters.gpu else ''}"
        )
    per_block = geometry.kv_bytes_per_token_per_rank * geometry.block_tokens
    blocks = gpu.bytes_per_rank // per_block
    return (
        Figure("device bytes per rank", gpu.bytes_per_rank, how),
        Figure(
            "device tokens",
            gpu.tokens,
            f"{count(blocks)} blocks x {geometry.block_tokens} tokens{_engines(spec)}"
            f"{_less_states(spec, geometry, gpu, None)}",
        ),
    )


def _cpu_figures(
    spec: Spec, geometry: Geometry, tiers: TiersPlan, backend: BackendPlan
) -> tuple[Figure, ...]:
    cpu, engine = tiers.cpu, spec.engine
    ranks = engine.tensor_parallel_size * engine.data_parallel_size
    one, chunk = chunk_bytes(geometry, backend), backend.tokens_per_chunk
    chunks = cpu.held_tokens // chunk // engine.data_parallel_size
    figures = [
        Figure(
            "CPU tier bytes per rank",
            cpu.bytes_per_rank,
            f"{size(cpu.capacity_bytes)} / {many(ranks, 'rank')}",
        ),
        Figure(
            "CPU tier chunk bytes",
            one,
            f"{chunk} tokens x {count(geometry.kv_bytes_per_token)} B{_windows(geometry, backend)}, "
            f"to {count(backend.chunk_alignment_bytes)} B each",
        ),
        Figure(
            "CPU tier tokens",
            cpu.tokens,
            f"{count(chunks)} chunks x {chunk} tokens{_engines(spec)}"
            f"{_less_states(spec, geometry, cpu, backend)}",
        ),
    ]
    if cpu.hugepages:
        figures.append(
            Figure(
                "huge pages",
                cpu.hugepages.pages,
                f"of {size(cpu.hugepages.page_bytes)} each, {size(cpu.hugepages.bytes)} in all: "
                "what a rank maps is rounded up",
            )
        )
    return tuple(figures)


def _disk_figures(
    spec: Spec, geometry: Geometry, tiers: TiersPlan, backend: BackendPlan
) -> tuple[Figure, ...]:
    disk = tiers.disk
    if disk is None:
        return ()
    chunk = backend.tokens_per_chunk
    chunks = disk.held_tokens // chunk // spec.engine.data_parallel_size
    held = backend.disk_chunks
    return (
        Figure("disk tier bytes per rank", disk.bytes_per_rank, f"of {size(disk.capacity_bytes)}"),
        *((Figure("disk tier chunks", held.chunks, held.how),) if held else ()),
        Figure(
            "disk tier tokens",
            disk.tokens,
            f"{count(chunks)} chunks x {chunk} tokens{_engines(spec)}"
            f"{_less_states(spec, geometry, disk, backend)}",
        ),
    )


def _windows(geometry: Geometry, backend: BackendPlan) -> str:
    """What a chunk keeps beside its tokens, of a backend that keeps windows with each."""
    if backend.bytes_per_chunk is None:
        return ""
    beside = backend.bytes_per_chunk - backend.tokens_per_chunk * geometry.kv_bytes_per_token
    return f" + {size(beside)} of windows"


def _less_states(spec: Spec, geometry: Geometry, tier: TierPlan, backend: BackendPlan | None) -> str:
    if not tier.states_tokens:
        return ""
    tokens = prefix_tokens(spec, geometry) or 0
    return (
        f" - {count(tier.states_tokens)} for windows and states, "
        f"{size(kept_bytes(tokens, spec, geometry, backend))} a prefix of {count(tokens)} tokens"
    )


def _engines(spec: Spec) -> str:
    engines = spec.engine.data_parallel_size
    return f" x {engines} engines" if engines > 1 else ""
