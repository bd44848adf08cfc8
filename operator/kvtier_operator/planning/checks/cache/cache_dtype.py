"""Whether vLLM keeps the KV cache in the dtype that it is sized for."""

from collections.abc import Iterator
from typing import Final

from kvtier_operator.api.spec.engine import Device, KVCacheDtype
from kvtier_operator.planning.arguments.extra_args import value_of
from kvtier_operator.planning.base.vllm_minor import vllm_minor
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.kv_cache.dtype_support import KEPT, kind_of, maker_of
from kvtier_operator.planning.kv_cache.split import packs_keys_and_values
from kvtier_operator.planning.model_shape.geometry import LayerKind
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("cache-dtype", "spec.engine.kvCacheDtype")
_NOT_SUPPORTED: Final = "CacheDtypeNotSupported"
# Heads that FlashInfer has kernels for, the one backend that keeps nvfp4 (vLLM, backends/flashinfer.py).
_NVFP4_HEAD_DIMS: Final = (64, 128, 256, 512)
_NVFP4: Final = {KVCacheDtype.NVFP4, KVCacheDtype.NVFP4_4OVER6}
_MISREAD_HEAD_DIM: Final = 64
# Kept by compute capability 10 alone: B200 and its like (flashinfer.py, flashmla_sparse.py).
_BLACKWELL_ONLY: Final = {KVCacheDtype.NVFP4_4OVER6, KVCacheDtype.NVFP4_DS_MLA}
_ULTRAQUANT_TOGETHER: Final = 32
_OWN: Final = {KVCacheDtype.FLOAT16, KVCacheDtype.BFLOAT16}
_KEEPS_ITS_OWN: Final = 33
"""The first minor whose cache is in the model's own dtype, or in one that is smaller."""


def cache_dtype(given: CheckInput) -> CheckResult:
    """A dtype that no backend keeps ends vLLM at its start, or worse: on a CPU it is written over its end."""
    field, dtype = _field_and_dtype(given)
    if reason := next(_refusals(given, dtype), None):
        return _VERDICTS.reject(_NOT_SUPPORTED, reason, field=field)
    if unlike := _unlike_the_model(given, dtype):
        message = (
            f"the model computes in {unlike}, and vLLM 0.33 starts with a cache of {dtype} only where "
            "that is the same: set kvCacheDtype to auto"
        )
        if (vllm_minor(given.spec.engine.image) or 0) >= _KEEPS_ITS_OWN:
            return _VERDICTS.reject(_NOT_SUPPORTED, message, field=field)
        return _VERDICTS.warn("CacheDtypeNotModels", message, field=field)
    if (of := _on_blackwell_alone(given, dtype)) is not None:
        return _VERDICTS.warn(
            "CacheDtypeNeedsGPU",
            f"only GPUs of compute capability 10 (B200, GB200) keep {dtype}{of}: on others vLLM does not "
            "start",
            field=field,
        )
    return _VERDICTS.passed(f"cache of {dtype} on device {given.spec.engine.device}")


def _on_blackwell_alone(given: CheckInput, dtype: KVCacheDtype) -> str | None:
    """Of which attention those GPUs alone keep it, in words; None where others do, too.

    The kernels of others misread heads of 64 and cannot read sinks (flashinfer.py, supports_combination).
    """
    if dtype in _BLACKWELL_ONLY:
        return ""
    if dtype not in _NVFP4:
        return None
    if any(_MISREAD_HEAD_DIM in (group.key_dim, group.value_dim) for group in given.geometry.groups):
        return f" of heads of {_MISREAD_HEAD_DIM}"
    return " beside attention sinks" if given.geometry.has_sinks else None


def _unlike_the_model(given: CheckInput, dtype: KVCacheDtype) -> str:
    """What the model computes in, where the cache is to have another of these (0.33, config/vllm.py)."""
    model_dtype = value_of(given.spec.engine.extra_args, "--dtype") or given.geometry.computes_in
    computed = {"half": "float16"}.get(model_dtype, model_dtype)
    return computed if dtype in _OWN and computed in _OWN and computed != dtype else ""


def _field_and_dtype(given: CheckInput) -> tuple[str, KVCacheDtype]:
    """Field that the dtype comes from, and the dtype: the resource's, or the checkpoint's own."""
    asked, dtype = given.spec.engine.kv_cache_dtype, given.geometry.cache_dtype
    return (_VERDICTS.field if asked is dtype else "spec.model.name"), dtype


def _refusals(given: CheckInput, dtype: KVCacheDtype) -> Iterator[str]:
    """Why vLLM does not take this dtype, the plainest first."""
    engine, groups = given.spec.engine, given.geometry.groups
    maker, kind = maker_of(engine), kind_of(given.geometry)
    if kind is not None and (maker, kind) not in KEPT:
        yield f"vLLM computes on {kind} nowhere on {maker}: set engine.device, or serve another model"
    kept = () if kind is None else KEPT.get((maker, kind), ())
    if kept and dtype is not KVCacheDtype.AUTO and dtype not in kept:
        yield (
            f"no attention backend of vLLM keeps {kind} in {dtype} on {maker}: set kvCacheDtype to auto, "
            f"{', '.join(kept[:-1])} or {kept[-1]}"
        )
    if dtype is KVCacheDtype.FP8_E5M2 and given.geometry.has_cache_scales:
        yield "vLLM does not keep the cache of an fp8 checkpoint in fp8_e5m2: set kvCacheDtype to fp8 or auto"
    if packs_keys_and_values(dtype) and any(group.kind is LayerKind.SLIDING for group in groups):
        yield f"the backend that keeps {dtype} has no sliding window: set kvCacheDtype to auto or fp8"
    dims = {dim for group in groups for dim in (group.key_dim, group.value_dim) if dim}
    if dtype in _NVFP4 and (len(dims) > 1 or dims - set(_NVFP4_HEAD_DIMS)):
        wanted = ", ".join(map(str, _NVFP4_HEAD_DIMS))
        yield f"{dtype} needs keys and values of one size out of {wanted}; this model has {_listed(dims)}"
    if dtype is KVCacheDtype.ULTRAQUANT_4BIT and any(dim % _ULTRAQUANT_TOGETHER for dim in dims):
        yield f"{dtype} needs heads of a multiple of {_ULTRAQUANT_TOGETHER}; this model has {_listed(dims)}"
    computed = value_of(engine.extra_args, "--dtype")
    if (
        engine.device is Device.CPU
        and dtype in {KVCacheDtype.BFLOAT16, KVCacheDtype.FLOAT16}
        and computed in {"float32", "float"}
    ):
        # Seen as a segmentation fault in reshape_and_cache (csrc/cpu/cpu_attn_vec.hpp), at a long prompt.
        yield (
            f"vLLM on a CPU does not convert: with --dtype {computed} it overruns a {dtype} cache and dies; "
            "set kvCacheDtype to auto"
        )


def _listed(dims: set[int]) -> str:
    return " and ".join(map(str, sorted(dims)))
