"""Whether the cache's element types and layout are ones that the engine and the backend take."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from kvtier_operator.api.spec.command_line import FIELD
from kvtier_operator.api.spec.engine import Device, EngineSpec, KVCacheDtype
from kvtier_operator.api.spec.gpu import Architecture
from kvtier_operator.planning.backends.engine_image import engine_minor
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.kv_cache.split import RECURRENT_DTYPE, STATE_DTYPE, packs_keys_and_values
from kvtier_operator.planning.model_shape.block_tokens import BACKENDS, OPTIONS, Attention, named_backend
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.model_shape.shape import LayerKind, Recurrence
from kvtier_operator.planning.verdict import CheckResult


class Maker(StrEnum):
    """What the engine computes on, as far as its resource tells."""

    NVIDIA = "an NVIDIA GPU"
    AMD = "an AMD GPU"
    GAUDI = "a Gaudi"
    CPU = "a CPU"


class CacheKind(StrEnum):
    """What the layers of a model keep of a token."""

    HEADS = "keys and values"
    LATENT = "a latent (MLA)"
    SPARSE_LATENT = "a latent with an indexer (sparse MLA)"


_PLAIN: Final = (KVCacheDtype.FLOAT16, KVCacheDtype.BFLOAT16)
_FP8: Final = (KVCacheDtype.FP8, KVCacheDtype.FP8_E4M3)
_E5M2: Final = (KVCacheDtype.FP8_E5M2,)
_PER_TOKEN_HEAD: Final = (
    KVCacheDtype.INT4_PER_TOKEN_HEAD,
    KVCacheDtype.INT8_PER_TOKEN_HEAD,
    KVCacheDtype.FP8_PER_TOKEN_HEAD,
)
_TURBOQUANT: Final = (
    KVCacheDtype.TURBOQUANT_K8V4,
    KVCacheDtype.TURBOQUANT_4BIT_NC,
    KVCacheDtype.TURBOQUANT_K3V4_NC,
    KVCacheDtype.TURBOQUANT_3BIT_NC,
)
_NVFP4: Final = (KVCacheDtype.NVFP4, KVCacheDtype.NVFP4_4OVER6)
_NVIDIA_HEADS: Final = (*_PLAIN, *_FP8, *_E5M2, *_PER_TOKEN_HEAD, *_TURBOQUANT, *_NVFP4)
_AMD_HEADS: Final = (*_PLAIN, *_FP8, *_E5M2, *_PER_TOKEN_HEAD, *_TURBOQUANT, KVCacheDtype.ULTRAQUANT_4BIT)
_PACKED_LATENTS: Final = (KVCacheDtype.FP8_DS_MLA, KVCacheDtype.NVFP4_DS_MLA)

KEPT: Final[Mapping[tuple[Maker, CacheKind], tuple[KVCacheDtype, ...]]] = {
    (Maker.NVIDIA, CacheKind.HEADS): _NVIDIA_HEADS,
    (Maker.NVIDIA, CacheKind.LATENT): (*_PLAIN, *_FP8),
    (Maker.NVIDIA, CacheKind.SPARSE_LATENT): (*_PLAIN, *_FP8, *_PACKED_LATENTS),
    (Maker.AMD, CacheKind.HEADS): _AMD_HEADS,
    (Maker.AMD, CacheKind.LATENT): (*_PLAIN, *_FP8, *_E5M2),
    (Maker.AMD, CacheKind.SPARSE_LATENT): (*_PLAIN, *_FP8),
    (Maker.GAUDI, CacheKind.HEADS): (*_PLAIN, KVCacheDtype.FP8_INC),
    (Maker.GAUDI, CacheKind.LATENT): (*_PLAIN, KVCacheDtype.FP8_INC),
    (Maker.CPU, CacheKind.HEADS): (*_PLAIN, *_FP8, *_E5M2),
    (Maker.CPU, CacheKind.LATENT): _PLAIN,
}
"""Beside `auto`; nothing where vLLM has no backend at all. Gaudi's are those that vLLM's words name: its
backend is a plug-in. Source: `supported_kv_cache_dtypes` of every backend that vLLM 0.32 and 0.33 choose from
by themselves on that device (platforms/cuda.py, rocm.py, cpu.py; v1/attention/backends)."""

_GPU_OF: Final = {"amd.com/": Maker.AMD, "habana.ai/": Maker.GAUDI}


def _maker_of(engine: EngineSpec) -> Maker:
    """What the engine computes on."""
    if engine.device is Device.CPU:
        return Maker.CPU
    of_gpu = (engine.gpu.resource,) if engine.gpu else ()
    named = (*engine.resources.limits, *engine.resources.requests, *of_gpu)
    return next(
        (_GPU_OF[prefix] for prefix in _GPU_OF for name in named if name.startswith(prefix)), Maker.NVIDIA
    )


def _kind_of(geometry: Geometry) -> CacheKind | None:
    """What the layers keep of a token; None where the resource gives the sum alone."""
    kinds = {group.kind for group in geometry.groups}
    if LayerKind.MLA in kinds:
        sparse = any(group.index_bytes for group in geometry.groups)
        return CacheKind.SPARSE_LATENT if sparse else CacheKind.LATENT
    return CacheKind.HEADS if kinds else None


@check(FIELD)
def attention_backend(parts: CheckInput) -> CheckResult:
    """The engine ends at start with a backend for another kind of attention (platforms/cuda.py)."""
    name = named_backend(parts.spec.engine.extra_args)
    if not name:
        return attention_backend.passed("vLLM chooses the attention backend")
    place = parts.spec.engine.extra_args.field_path(*OPTIONS)
    if name not in BACKENDS:
        return attention_backend.warn(
            "BackendNotKnown",
            f"kvtier does not know attention backend {name}, nor the block that vLLM takes with it: "
            f"planned are {parts.geometry.block_tokens} tokens, and the picker follows what its engine says",
            field=place,
        )
    needed, _ = BACKENDS[name]
    kept = parts.geometry.attention.of_backends
    if parts.geometry.mla and kept is Attention.HEADS:
        kept = Attention.LATENT
    if needed is not kept and parts.geometry.groups:
        fitting = ", ".join(other for other, (attention, _) in BACKENDS.items() if attention is kept)
        advice = f"remove it, or name one of {fitting}" if fitting else "remove it"
        return attention_backend.reject(
            "BackendNotSupported",
            f"attention backend {name} is for {needed}, but this model keeps {kept}, so vLLM ends at start: "
            f"{advice}",
            field=place,
        )
    return attention_backend.passed(f"{name} is for {needed}")


_NOT_SUPPORTED: Final = "CacheDtypeNotSupported"
# Heads that FlashInfer has kernels for, the one backend that keeps nvfp4 (vLLM, backends/flashinfer.py).
_NVFP4_HEAD_DIMS: Final = (64, 128, 256, 512)
_MISREAD_HEAD_DIM: Final = 64
# Kept by compute capability 10 alone: B200 and its like (flashinfer.py, flashmla_sparse.py).
_BLACKWELL_ONLY: Final = {KVCacheDtype.NVFP4_4OVER6, KVCacheDtype.NVFP4_DS_MLA}
_ULTRAQUANT_TOGETHER: Final = 32
_KEEPS_ITS_OWN: Final = 33
"""The first minor whose cache is in the model's own dtype, or in one that is smaller."""


@check("spec.engine.kvCacheDtype")
def cache_dtype(parts: CheckInput) -> CheckResult:
    """A dtype that no backend keeps ends vLLM at its start, or worse: on a CPU it is written over its end."""
    field, dtype = _field_and_dtype(parts)
    if reason := next(_refusals(parts, dtype), None):
        return cache_dtype.reject(_NOT_SUPPORTED, reason, field=field)
    if unlike := _unlike_the_model(parts, dtype):
        message = (
            f"the model computes in {unlike}, and vLLM 0.33 starts with a cache of {dtype} only where "
            "that is the same: set kvCacheDtype to auto"
        )
        if (engine_minor(parts.spec, parts.observed) or 0) >= _KEEPS_ITS_OWN:
            return cache_dtype.reject(_NOT_SUPPORTED, message, field=field)
        return cache_dtype.warn("CacheDtypeNotModels", message, field=field)
    gpu = parts.spec.engine.gpu
    of = None if gpu and gpu.architecture is Architecture.BLACKWELL else _on_blackwell_alone(parts, dtype)
    if of is not None:
        alone = f"only GPUs of compute capability 10 (B200, GB200) keep {dtype}{of}"
        if gpu:
            return cache_dtype.reject(
                _NOT_SUPPORTED, f"{alone}, and gpu is {gpu}: vLLM does not start; choose another", field=field
            )
        return cache_dtype.warn(
            "CacheDtypeNeedsGPU", f"{alone}: on others vLLM does not start", field=field, weight=170
        )
    return cache_dtype.passed(f"cache of {dtype} on device {parts.spec.engine.device}")


def _on_blackwell_alone(parts: CheckInput, dtype: KVCacheDtype) -> str | None:
    """Of which attention those GPUs alone keep it, in words; None where others do, too.

    The kernels of others misread heads of 64 and cannot read sinks (flashinfer.py, supports_combination).
    """
    if dtype in _BLACKWELL_ONLY:
        return ""
    drafts = () if parts.geometry.draft is None else parts.geometry.draft.groups
    plain = any(group.kind is not LayerKind.MLA for group in drafts)
    if dtype in _FP8 and plain and any(group.sparse for group in parts.geometry.groups):
        # others pack latents, and take that for the draft's dtype, too (layers/attention/mla_attention.py)
        return " of sparse latents beside a draft's keys and values"
    if dtype not in _NVFP4:
        return None
    if any(_MISREAD_HEAD_DIM in (group.key_dim, group.value_dim) for group in parts.geometry.groups):
        return f" of heads of {_MISREAD_HEAD_DIM}"
    return " beside attention sinks" if parts.geometry.shape.has_sinks else None


def _unlike_the_model(parts: CheckInput, dtype: KVCacheDtype) -> str:
    """What the model computes in, where the cache is to have another of these (0.33, config/vllm.py)."""
    model_dtype = parts.spec.engine.extra_args.value("--dtype") or parts.geometry.shape.computes_in
    computed = {"half": "float16"}.get(model_dtype, model_dtype)
    return computed if dtype in _PLAIN and computed in _PLAIN and computed != dtype else ""


def _field_and_dtype(parts: CheckInput) -> tuple[str, KVCacheDtype]:
    """Field that the dtype comes from, and the dtype: the resource's, or the checkpoint's own."""
    asked, dtype = parts.spec.engine.kv_cache_dtype, parts.geometry.cache_dtype
    return (cache_dtype.field if asked is dtype else "spec.model.name"), dtype


def _refusals(parts: CheckInput, dtype: KVCacheDtype) -> Iterator[str]:
    """Why vLLM does not take this dtype, the plainest first."""
    engine, groups = parts.spec.engine, parts.geometry.groups
    maker, kind = _maker_of(engine), _kind_of(parts.geometry)
    if kind is not None and (maker, kind) not in KEPT:
        yield f"vLLM computes on {kind} nowhere on {maker}: set engine.device, or serve another model"
    kept = () if kind is None else KEPT.get((maker, kind), ())
    if kept and dtype is not KVCacheDtype.AUTO and dtype not in kept:
        yield (
            f"no attention backend of vLLM keeps {kind} in {dtype} on {maker}: set kvCacheDtype to auto, "
            f"{', '.join(kept[:-1])} or {kept[-1]}"
        )
    if dtype is KVCacheDtype.FP8_E5M2 and parts.geometry.shape.has_cache_scales:
        yield "vLLM does not keep the cache of an fp8 checkpoint in fp8_e5m2: set kvCacheDtype to fp8 or auto"
    if packs_keys_and_values(dtype) and parts.geometry.keeps(LayerKind.SLIDING):
        yield f"the backend that keeps {dtype} has no sliding window: set kvCacheDtype to auto or fp8"
    if dtype in _TURBOQUANT and parts.geometry.shape.images_both_ways:
        yield f"the backend that keeps {dtype} sees no image both ways: set kvCacheDtype to auto or fp8"
    if dtype in _TURBOQUANT and parts.geometry.shape.attention_beside_states:
        yield (
            f"vLLM finds no layers of attention alone to keep in {dtype} in this model: set kvCacheDtype to "
            "auto or fp8"
        )
    dims = {dim for group in groups for dim in (group.key_dim, group.value_dim) if dim}
    if dtype in _NVFP4 and (len(dims) > 1 or dims - set(_NVFP4_HEAD_DIMS)):
        wanted = ", ".join(map(str, _NVFP4_HEAD_DIMS))
        yield f"{dtype} needs keys and values of one size out of {wanted}; this model has {_sizes(dims)}"
    if dtype is KVCacheDtype.ULTRAQUANT_4BIT and any(dim % _ULTRAQUANT_TOGETHER for dim in dims):
        yield f"{dtype} needs heads of a multiple of {_ULTRAQUANT_TOGETHER}; this model has {_sizes(dims)}"
    computed = engine.extra_args.value("--dtype")
    if engine.device is Device.CPU and dtype in _PLAIN and computed in {"float32", "float"}:
        # Seen as a segmentation fault in reshape_and_cache (csrc/cpu/cpu_attn_vec.hpp), at a long prompt.
        yield (
            f"vLLM on a CPU does not convert: with --dtype {computed} it overruns a {dtype} cache and dies; "
            "set kvCacheDtype to auto"
        )


def _sizes(dims: set[int]) -> str:
    return " and ".join(map(str, sorted(dims)))


_CHOICES: Final = ("auto", "float32", "float16", "bfloat16")
_OF_KDA: Final = ("auto", "float32", "bfloat16")


@check("spec.engine.extraArgs")
def state_dtype(parts: CheckInput) -> CheckResult:
    """With another vLLM does not start (config/cache.py, MambaDType; mamba_utils.py, kda_state_dtype)."""
    if fault := next(_state_faults(parts), None):
        return state_dtype.reject("StateDtypeNotSupported", fault)
    return state_dtype.passed("states are kept in a dtype that vLLM takes")


def _state_faults(parts: CheckInput) -> Iterator[str]:
    states = (group.state for group in parts.geometry.groups)
    kda = any(state is not None and state.recurrence is Recurrence.KDA for state in states)
    for option, choices in ((STATE_DTYPE, _CHOICES), (RECURRENT_DTYPE, _OF_KDA if kda else _CHOICES)):
        dtype = parts.spec.engine.extra_args.value(option)
        if dtype is not None and dtype not in choices:
            of_model = " for the states of this model" if choices is _OF_KDA else ""
            yield f"vLLM takes no {option} {dtype}{of_model}: give {', '.join(choices[:-1])} or {choices[-1]}"


_VARIABLE: Final = "VLLM_KV_CACHE_LAYOUT"
_BLOCKS_FIRST: Final = frozenset({"BLHNC", "BLNHC", "BHLNC"})
"""The blocks' layers lie beside each other, as kvtier's connector asks."""
_IN_PIECES: Final = frozenset({"BHLNC", "LHBNC"})
"""A block of one layer lies in several places."""
_OF_CPU: Final = frozenset({"LBHNC", "HND"})


@check(f"spec.engine.env[{_VARIABLE}]")
def cache_layout(parts: CheckInput) -> CheckResult:
    """The variable goes before what a connector asks (vLLM, v1/attention/backends/utils.py)."""
    variable = next((variable for variable in parts.spec.engine.env if variable.name == _VARIABLE), None)
    if variable is None:
        return cache_layout.passed("the cache lies as the backend asks", field="spec.engine.env")
    layout = variable.value or "(not known)"
    on_cuda = parts.spec.engine.device is Device.GPU
    planned = on_cuda and parts.traits.blocks_outermost
    planned = planned and not packs_keys_and_values(parts.geometry.cache_dtype)
    unlike, as_planned = _unlike_pages(parts), (layout in _BLOCKS_FIRST) is planned
    in_pieces = layout in _IN_PIECES and (unlike or parts.geometry.keeps_states)
    if (unlike and not as_planned) or in_pieces or not (on_cuda or layout in _OF_CPU):
        return cache_layout.reject(
            "LayoutNotPlanned",
            f"{_VARIABLE} {layout} goes before the layout that backend {parts.spec.backend} is planned with: "
            "with this model vLLM does not start, or takes blocks of another size; remove it",
        )
    if not as_planned and planned:
        return cache_layout.warn(
            "LayoutCopiesSlowly",
            f"{_VARIABLE} {layout} keeps the layers of a block apart, so each is copied by itself, slower: "
            "remove it for one copy a block",
            by_itself="plans the same sizes and passes it on",
        )
    return cache_layout.passed(f"{_VARIABLE} {layout} changes no size")


def _unlike_pages(parts: CheckInput) -> bool:
    """Whether layers keep unlike bytes of a token, so that the layout decides how they share blocks."""
    groups = [group for group in parts.geometry.groups if group.kind is not LayerKind.STATE]
    pages = {(group.kv_heads, group.key_dim, group.value_dim, group.own_dtype) for group in groups}
    return len(pages) > 1 or any(group.index_bytes for group in groups)
