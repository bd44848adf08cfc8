"""The numbers of the sizing report, each with how it came about."""

from collections.abc import Iterator

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers import fields_of
from kvtier_operator.planning.backends.kept_states import kept_bytes, retention_tokens
from kvtier_operator.planning.base.ending import plan_ending
from kvtier_operator.planning.base.tier_plan import BackendPlan, TierPlan, TiersPlan
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.model_shape.shape import CATALOGUE
from kvtier_operator.planning.plan import Figure
from kvtier_operator.planning.pod.budget import START_S, Budget, load_s, pin_s, read_s
from kvtier_operator.planning.report.store_figures import store_figures
from kvtier_operator.planning.tiers import traits_of_tier
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
        *(
            figure
            for tier, planned in tiers.by_tier.items()
            if tier is not Tier.GPU
            for figure in _tier_figures(tier, spec, geometry, planned, backend)
        ),
        *store_figures(spec, geometry),
        *_cpu_figures(budget),
        Figure(
            "startup seconds",
            budget.startup_s,
            f"{START_S} s to start + {load_s(geometry)} s to load weights "
            f"+ {pin_s(spec, tiers)} s to take the CPU tier's memory"
            + (f" + {read_s(backend)} s to read the disk's index" if read_s(backend) else ""),
        ),
        _drain_figure(spec),
    )


def _cpu_figures(budget: Budget) -> Iterator[Figure]:
    if budget.cpu:
        parts = " + ".join(f"{line.millicores:,} for {line.what}" for line in budget.cpu)
        how = f"{parts}: a core for each process of vLLM; no limit"
        yield Figure("CPU millicores", sum(line.millicores for line in budget.cpu), how)


def _drain_figure(spec: Spec) -> Figure:
    ending = plan_ending(spec)
    how = (
        f"for requests still running when the pod is told to stop; clients get {ending.pre_stop_s} s before "
        f"that to send elsewhere, vLLM {ending.exit_s} s after it to exit: {ending.grace_s} s of grace in all"
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
        memory = size(engine.gpu_bytes) if engine.gpu_bytes else "?"
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


def _tier_figures(
    tier: Tier, spec: Spec, geometry: Geometry, planned: TierPlan, backend: BackendPlan
) -> Iterator[Figure]:
    """Of a tier beyond the device."""
    name, in_memory = f"{fields_of(tier).title} tier", traits_of_tier(tier).in_memory
    engine, capacity = spec.engine, size(planned.capacity_bytes)
    ranks = many(engine.ranks, "rank")
    how = f"{capacity} / {ranks}" if in_memory else f"of {capacity}"
    if not tier.shared:
        yield Figure(f"{name} bytes per rank", planned.bytes_per_rank, how)
    engines = 1 if tier.shared else engine.data_parallel_size
    chunk, held = backend.tokens_per_chunk, backend.chunks.get(tier)
    if in_memory:
        yield Figure(
            f"{name} chunk bytes",
            chunk_bytes(geometry, backend),
            f"{chunk} tokens x {count(geometry.kv_bytes_per_token)} B{_windows(geometry, backend)}, "
            f"to {count(backend.chunk_alignment_bytes)} B each",
        )
    if held:
        yield Figure(f"{name} chunks", held.chunks, held.how)
    yield Figure(
        f"{name} tokens",
        planned.tokens,
        f"{count(planned.held_tokens // chunk // engines)} chunks x {chunk} tokens"
        f"{'' if tier.shared else _engines(spec)}{_less_states(spec, geometry, planned, backend)}",
    )
    if pages := planned.hugepages:
        yield Figure(
            "huge pages",
            pages.pages,
            f"of {size(pages.page_bytes)} each, {size(pages.bytes)} in all: what a rank maps is rounded up",
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
