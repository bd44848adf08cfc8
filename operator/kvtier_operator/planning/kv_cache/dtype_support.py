"""Which dtypes of the KV cache vLLM's attention backends keep, by device and by what a layer keeps.

Source: `supported_kv_cache_dtypes` of every backend that vLLM 0.32 and 0.33 choose from by themselves on
that device (platforms/cuda.py, rocm.py, cpu.py; v1/attention/backends).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from kvtier_operator.api.spec.engine import Device, EngineSpec, KVCacheDtype
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.model_shape.shape import LayerKind


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
_AMD_HEADS: Final = (
    *(*_PLAIN, *_FP8, *_E5M2, *_PER_TOKEN_HEAD, *_TURBOQUANT),
    KVCacheDtype.ULTRAQUANT_4BIT,
)
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
backend is a plug-in."""

_GPU_OF: Final = {"amd.com/": Maker.AMD, "habana.ai/": Maker.GAUDI}


def maker_of(engine: EngineSpec) -> Maker:
    """What the engine computes on."""
    if engine.device is Device.CPU:
        return Maker.CPU
    named = (*engine.resources.limits, *engine.resources.requests)
    return next(
        (_GPU_OF[prefix] for prefix in _GPU_OF for name in named if name.startswith(prefix)), Maker.NVIDIA
    )


def kind_of(geometry: Geometry) -> CacheKind | None:
    """What the layers keep of a token; None where the resource gives the sum alone."""
    kinds = {group.kind for group in geometry.groups}
    if LayerKind.MLA in kinds:
        sparse = any(group.index_bytes for group in geometry.groups)
        return CacheKind.SPARSE_LATENT if sparse else CacheKind.LATENT
    return CacheKind.HEADS if kinds else None
