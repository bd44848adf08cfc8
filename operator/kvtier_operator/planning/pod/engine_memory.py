"""Host memory of an engine without its tiers, line by line: its processes, and what options take.

What vLLM's options do is in planning/arguments/effects.py; here is how much those take that take memory.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.command_line import CommandLine, whole_of
from kvtier_operator.api.spec.engine import Device, EngineSpec
from kvtier_operator.planning.arguments.batches import sequences_of
from kvtier_operator.planning.base.devices import without_cuda
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.model_shape.shape import takes_media
from kvtier_operator.planning.tiers.capacity import CPU_DEVICE_KV_CACHE_BYTES
from kvtier_operator.planning.units import GIB, ceil_div, many, size
from kvtier_operator.planning.weights.device_weights import (
    AdapterBytes,
    adapter_bytes,
    rank_weights,
)
from kvtier_operator.planning.weights.offloading import offloading


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One line of the pod's memory or disk: what takes `bytes`, and why that many."""

    what: str
    bytes: int
    why: str


FRONT_END_BYTES: Final = GIB
"""vLLM's process that answers HTTP: 0.9 GiB resident after importing vLLM 0.32 and torch (measured), and room
for requests."""
CPU_RANK_BYTES: Final = 2 * GIB
"""One CPU rank with its share of the engine core, without weights and cache: the same 0.9 GiB a process,
and activations of a prefill step."""
CUDA_RANK_BYTES: Final = 5 * GIB
"""Host side of one CUDA rank: CUDA context, pinned staging buffers, compiled kernels and one safetensors
shard while loading (shards are written at up to 5 GB: huggingface_hub, split_torch_state_dict_into_shards).
LMCache's operator adds the same 5 GiB to its cache's size."""
DEVICE_CACHE_LINE: Final = "device KV cache"
"""Of the pod's memory, where vLLM computes on the CPU."""
SEQUENCES_LINE: Final = "tokens of sequences"
"""Of the pod's memory, what vLLM keeps page-locked for requests."""
API_SERVERS: Final = "--api-server-count"


def engine_memory(spec: Spec, geometry: Geometry, later_bytes: int) -> tuple[BudgetLine, ...]:
    """The engine without tiers: as the resource says, or computed; lines of 0 bytes among them.

    Args:
        spec: What is wanted.
        geometry: KV geometry of one engine.
        later_bytes: What the tiers take once the weights are loaded, which loading may take before that.
    """
    given = given_memory(spec.engine)
    if given is None:
        return computed_memory(spec, geometry, later_bytes)
    return (BudgetLine("engine working set", given.bytes, f"{given.text} of {given.field}"),)


@dataclass(frozen=True, slots=True)
class GivenMemory:
    """What a resource says of an engine's memory without tiers."""

    field: str  # where, below spec.engine
    text: str  # as it is written
    bytes: int


def given_memory(engine: EngineSpec) -> GivenMemory | None:
    """What the resource says of the engine's memory without tiers, if it does."""
    resources = engine.resources
    for where, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        if (memory := amounts.get("memory")) is not None:
            return GivenMemory(f"resources.{where}.memory", str(memory), parse_bytes(memory))
    return None


def computed_memory(spec: Spec, geometry: Geometry, later_bytes: int) -> tuple[BudgetLine, ...]:
    """What the engine takes without tiers, as `engine_memory` counts it where the resource does not say."""
    later = (_media_cache(spec.engine, geometry), _sleeping_weights(spec.engine, geometry))
    return (
        _front_ends(spec.engine),
        *_processes(spec, geometry),
        _adapters(spec, geometry),
        *later,
        _offloaded_weights(spec.engine, geometry),
        _sequence_tokens(spec.engine, geometry),
        _streamer(spec.engine, geometry, later_bytes + sum(line.bytes for line in later)),
    )


def _front_ends(engine: EngineSpec) -> BudgetLine:
    servers = api_servers(engine.extra_args)
    several = f"{many(servers, 'process')} x " if servers > 1 else ""
    name = "vLLM front ends" if servers > 1 else "vLLM front end"
    why = f"{several}{size(FRONT_END_BYTES)}: vLLM and torch, resident"
    return BudgetLine(name, FRONT_END_BYTES * servers, why)


def api_servers(arguments: CommandLine) -> int:
    """Processes that answer HTTP in one pod."""
    return max(1, arguments.number(API_SERVERS) or 1)


def _processes(spec: Spec, geometry: Geometry) -> Iterator[BudgetLine]:
    engine, ranks = spec.engine, spec.engine.ranks
    if engine.device is Device.GPU:
        context = "device's" if without_cuda(spec) else "CUDA"
        why = f"{many(ranks, 'rank')} x {size(CUDA_RANK_BYTES)}: {context} context, staging, loading shards"
        yield BudgetLine("engine processes", CUDA_RANK_BYTES * ranks, why)
        return
    cache = engine.kv_cache_memory.bytes if engine.kv_cache_memory else CPU_DEVICE_KV_CACHE_BYTES
    default = "" if engine.kv_cache_memory else ", its default"
    weights, engines = geometry.weights_bytes or 0, engine.data_parallel_size
    yield BudgetLine(
        "engine processes",
        CPU_RANK_BYTES * ranks,
        f"{many(ranks, 'rank')} x {size(CPU_RANK_BYTES)}: vLLM, torch, activations",
    )
    yield BudgetLine(
        "model weights", weights * engines, f"{many(engines, 'engine')} x {size(weights)} on device cpu"
    )
    yield BudgetLine(
        DEVICE_CACHE_LINE,
        cache * ranks,
        f"{many(ranks, 'rank')} x {size(cache)} of kvCacheMemory{default}, in memory on device cpu",
    )


def _adapters(spec: Spec, geometry: Geometry) -> BudgetLine:
    """Copies of LoRA adapters in each rank; on device cpu the room of those in a batch, too."""
    ranks, taken = spec.engine.ranks, adapter_bytes(spec, geometry) or AdapterBytes(0, 0)
    rank_bytes = taken.host + (taken.gpu if spec.engine.device is Device.CPU else 0)
    return BudgetLine(
        "LoRA adapters",
        rank_bytes * ranks,
        f"{many(ranks, 'rank')} x {size(rank_bytes)}: copies of each adapter",
    )


_CACHE_GIB: Final = "--mm-processor-cache-gb"
_CACHE_TYPE: Final = "--mm-processor-cache-type"
_DEFAULT_CACHE_GIB: Final = 4.0
_IN_SHM: Final = "shm"


@dataclass(frozen=True, slots=True)
class _MediaCache:
    """Prepared images, video and sound (multimodal/cache/factories.py, renderers/base.py)."""

    bytes: int  # of one copy
    copies: int  # how many of them are in the memory of processes
    shared: int  # how many of them are in /dev/shm


def _media_copies(engine: EngineSpec, geometry: Geometry) -> _MediaCache:
    """Alone, an API server and its engine have one each; several servers have two each, and engines none."""
    line = engine.extra_args
    if not takes_media(line, geometry.shape):
        return _MediaCache(0, 0, 0)
    asked = line.amount(_CACHE_GIB)
    copy_bytes = int((_DEFAULT_CACHE_GIB if asked is None else asked) * GIB)
    servers = api_servers(line)
    if servers > 1 or engine.data_parallel_size > 1:
        return _MediaCache(copy_bytes, 2 * servers, 0)
    shared = line.value(_CACHE_TYPE) == _IN_SHM
    return _MediaCache(copy_bytes, 1 if shared else 2, int(shared))


def _media_cache(engine: EngineSpec, geometry: Geometry) -> BudgetLine:
    cache = _media_copies(engine, geometry)
    why = f"{cache.copies} x {size(cache.bytes)} of {_CACHE_GIB}, for images, video and sound"
    return BudgetLine("multimodal cache", cache.bytes * cache.copies, why)


_SLEEP: Final = "--enable-sleep-mode"
_ROUNDING: Final = 2
"""PyTorch's page-locked memory is a power of two for each parameter or segment: at most twice its bytes
(ATen/core/CachingHostAllocator.h)."""


def _sleeping_weights(engine: EngineSpec, geometry: Geometry) -> BudgetLine:
    """Level 1 copies the weights of a rank, segment by segment (device_allocator/cumem.py, sleep)."""
    held = rank_weights(engine, geometry)
    asleep = engine.extra_args.is_on(_SLEEP) and held is not None and engine.device is Device.GPU
    rank_bytes = held.most_bytes if held is not None and asleep else 0
    ranks = engine.ranks
    return BudgetLine(
        "weights while asleep",
        rank_bytes * _ROUNDING * ranks,
        f"{many(ranks, 'rank')} x {_ROUNDING} x {size(rank_bytes)} of {_SLEEP}, level 1: page-locked by "
        "powers of two",
    )


def _offloaded_weights(engine: EngineSpec, geometry: Geometry) -> BudgetLine:
    """Weights that stay in host memory (model_executor/offloader/uva.py and prefetch.py)."""
    asked, held, ranks = offloading(engine.extra_args), rank_weights(engine, geometry), engine.ranks
    moved_bytes = asked.moved_bytes(held.most_bytes if held else None) if asked else 0
    how = asked.option if asked else ""
    return BudgetLine(
        "weights moved to memory",
        moved_bytes * _ROUNDING * ranks,
        f"{many(ranks, 'rank')} x {_ROUNDING} x {size(moved_bytes)} of {how}: page-locked by powers of two",
    )


_REPLAY: Final = "--enable-trace-replay"
_TOKEN_BYTES: Final = 4
_WITHIN_PROCESS_BYTES: Final = GIB
"""Of them that the allowance of an engine's process covers: what loading took is free by then."""


def _sequence_tokens(engine: EngineSpec, geometry: Geometry) -> BudgetLine:
    """Tokens of all sequences, page-locked (v1/worker/gpu/states.py, buffer_utils.py)."""
    longest = geometry.longest_tokens(engine) or 0
    sequences, ranks = sequences_of(engine), engine.ranks
    table_bytes = _power_of_two(_TOKEN_BYTES * sequences * longest)
    tables = 2 if engine.extra_args.is_on(_REPLAY) else 1
    rank_bytes = max(0, tables * table_bytes - _WITHIN_PROCESS_BYTES)
    if engine.device is Device.CPU:
        rank_bytes = 0
    return BudgetLine(
        SEQUENCES_LINE,
        rank_bytes * ranks,
        f"{many(ranks, 'rank')} x {size(rank_bytes)}: {sequences:,} sequences of {longest:,} tokens",
    )


def _power_of_two(value: int) -> int:
    return 1 << (value - 1).bit_length() if value else 0


_BUFFERS_LINE: Final = "buffers while loading"
FORMAT: Final = "--load-format"
LOADER: Final = "--model-loader-extra-config"
STREAMER: Final = "runai_streamer"
_STREAMER_SHARDED: Final = "runai_streamer_sharded"
_LIMIT_VARIABLE: Final = "RUNAI_STREAMER_MEMORY_LIMIT"
_STREAMER_BYTES: Final = 40_000_000_000
"""Its buffer, if the checkpoint is no smaller (runai-model-streamer 0.16.1 and 0.17.0)."""


def _streamer(engine: EngineSpec, geometry: Geometry, later_bytes: int) -> BudgetLine:
    """Buffers while weights are streamed; tiers and caches take their memory after that."""
    loading = _streamed_bytes(engine, geometry)
    over_bytes = max(0, loading - later_bytes)
    ranks = engine.ranks
    less = f", less {size(later_bytes)} that tiers and caches take later" if later_bytes else ""
    why = f"{size(loading)} of buffers of {many(ranks, 'rank')} while weights are streamed{less}"
    return BudgetLine(_BUFFERS_LINE, over_bytes, why)


def streaming_notes(engine: EngineSpec, geometry: Geometry, lines: Iterable[BudgetLine]) -> tuple[str, ...]:
    """Buffers for weights that are no line of the pod's memory: they are gone before the tiers are taken."""
    loading = _streamed_bytes(engine, geometry)
    if not loading or any(line.what == _BUFFERS_LINE for line in lines):
        return ()
    return (
        (
            f"weights are streamed through buffers of {size(loading)} ({many(engine.ranks, 'rank')}), less "
            "than tiers and caches take after that, so the pod's memory has no line for them"
        ),
    )


def _streamed_bytes(engine: EngineSpec, geometry: Geometry) -> int:
    line = engine.extra_args
    kind = (line.value(FORMAT) or "").lower()
    if kind not in {STREAMER, _STREAMER_SHARDED}:
        return 0
    settings: Mapping[str, Any] = line.json_object(LOADER)
    weights, ranks = geometry.weights_bytes, engine.tensor_parallel_size
    if settings.get("distributed") is True and weights is not None:
        return weights * engine.data_parallel_size  # each rank reads its share
    read_bytes = weights if weights is None or kind == STREAMER else ceil_div(weights, ranks)
    limit = _streamer_limit(engine, settings)
    buffer_bytes = limit if read_bytes is None else read_bytes if limit < 0 else min(limit, read_bytes)
    return max(0, buffer_bytes) * engine.ranks


def _streamer_limit(engine: EngineSpec, settings: Mapping[str, Any]) -> int:
    """Bytes of one rank's buffer; below 0 for the whole checkpoint (runai_streamer_loader.py)."""
    limit = settings.get("memory_limit")
    if isinstance(limit, int) and not isinstance(limit, bool):
        return limit
    values = (variable.value for variable in engine.env if variable.name == _LIMIT_VARIABLE)
    value = next(values, None) or ""
    limit = whole_of(value) if value.removeprefix("-").isdecimal() else None
    return _STREAMER_BYTES if limit is None else limit


_ARENA: Final = "--enable-shm-tensor-arena"
_ARENA_BYTES: Final = 2 * GIB
ENCODERS: Final = "--ec-transfer-config"
ENCODER_BYTES: Final = "ec_cpu_bytes"


def options_in_shm(engine: EngineSpec, geometry: Geometry) -> tuple[BudgetLine, ...]:
    """What options keep in /dev/shm; without lines of 0 bytes."""
    cache = _media_copies(engine, geometry)
    settings = engine.extra_args.json_object(ENCODERS).get("ec_connector_extra_config")
    encoded = whole_of(settings.get(ENCODER_BYTES)) if isinstance(settings, Mapping) else None
    has_arena = engine.extra_args.is_on(_ARENA) and engine.tensor_parallel_size > 1
    engines = engine.data_parallel_size
    lines = (
        BudgetLine(
            "multimodal cache in /dev/shm",
            cache.bytes * cache.shared,
            f"{size(cache.bytes)} of {_CACHE_GIB}, {_CACHE_TYPE} {_IN_SHM}",
        ),
        BudgetLine(
            "tensors in /dev/shm",
            _ARENA_BYTES * engines if has_arena else 0,
            f"{many(engines, 'engine')} x {size(_ARENA_BYTES)} of {_ARENA}",
        ),
        BudgetLine(
            "encoder cache in /dev/shm",
            max(0, encoded or 0) * engines,
            f"{many(engines, 'engine')} x {ENCODER_BYTES} of {ENCODERS}",
        ),
    )
    return tuple(line for line in lines if line.bytes)
