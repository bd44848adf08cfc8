"""Tokens of one KV block that vLLM takes, before it raises them for a linear-attention state.

vLLM chooses an attention backend by what the model's layers keep, the cache's element type and the GPU, and
the smallest block that the backend takes, from 16 up (0.32 and 0.33: platforms/cuda.py,
_get_backend_priorities; platforms/interface.py, update_block_size_for_backend; each backend's
get_supported_kernel_block_sizes). A block that is given leaves out the backends that do not take it; a
backend that spec.engine.extraArgs name goes before vLLM's choice.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.api.spec.engine import Device, EngineSpec, KVCacheDtype
from kvtier_operator.api.spec.gpu import Architecture
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind

_OPTION: Final = "--attention-backend"
_CONFIG: Final = "--attention-config"
OPTIONS: Final = (_OPTION, _CONFIG)


class Attention(StrEnum):
    """What a model's attention layers keep, as far as backends differ by it."""

    HEADS = "heads"  # and MLA latents of a width that TRITON_MLA alone takes
    WIDE_HEADS = "wide heads"
    IMAGE_HEADS = "heads, over images in both directions"
    WIDE_IMAGE_HEADS = "wide heads, over images in both directions"
    SPARSE_HEADS = "sparse heads"
    LATENT = "MLA"
    SPARSE_LATENT = "sparse MLA"

    @property
    def of_backends(self) -> "Attention":
        """What a backend for it is for."""
        heads = {Attention.WIDE_HEADS, Attention.IMAGE_HEADS, Attention.WIDE_IMAGE_HEADS}
        return Attention.HEADS if self in heads else self


BACKENDS: Final[Mapping[str, tuple[Attention, int]]] = {
    "FLASH_ATTN": (Attention.HEADS, 16),
    "FLASHINFER": (Attention.HEADS, 16),
    "TRITON_ATTN": (Attention.HEADS, 16),
    "TRITON_FLASH_ATTN": (Attention.HEADS, 16),
    "TRITON_FLASHINFER": (Attention.HEADS, 64),
    "FLEX_ATTENTION": (Attention.HEADS, 16),
    "B12X": (Attention.HEADS, 128),
    "HPC_ATTN": (Attention.HEADS, 64),
    "TRITON_MLA": (Attention.LATENT, 16),
    "FLASH_ATTN_MLA": (Attention.LATENT, 16),
    "FLASHINFER_MLA": (Attention.LATENT, 32),
    "TOKENSPEED_MLA": (Attention.LATENT, 32),
    "FLASHMLA": (Attention.LATENT, 64),
    "CUTLASS_MLA": (Attention.LATENT, 128),
    # beside the indexer's backend, which takes 64 and nothing less
    "FLASHINFER_MLA_SPARSE": (Attention.SPARSE_LATENT, 64),
    "FLASHINFER_MLA_SPARSE_SM90": (Attention.SPARSE_LATENT, 64),
    "FLASHINFER_MLA_SPARSE_SM120": (Attention.SPARSE_LATENT, 64),
    "FLASHMLA_SPARSE": (Attention.SPARSE_LATENT, 64),
    "FLASH_ATTN_MLA_SPARSE": (Attention.SPARSE_LATENT, 64),
}
"""NVIDIA's, by name: what a model must keep for it, and the block that vLLM takes with it."""


def named_backend(command_line: CommandLine) -> str:
    """Name of the backend; empty where vLLM chooses.

    Raises:
        InvalidInputError: vLLM would refuse what says it.
    """
    name: object = command_line.value(_OPTION) or command_line.json_object(_CONFIG).get("backend")
    return str(name or "").upper()


DEFAULT_BLOCK_TOKENS: Final[Mapping[Device, int]] = {Device.GPU: 16, Device.CPU: 128}
"""Where no backend wants another: config/cache.py, DEFAULT_BLOCK_SIZE; on a CPU platforms/cpu.py,
check_and_update_config (0.32) and update_block_size_for_backend (0.33)."""


@dataclass(frozen=True, slots=True)
class BlockChoice:
    """The block that vLLM takes."""

    tokens: int  # tokens of a block; on a Hopper GPU where that decides and none is named
    by_gpu: Mapping[Architecture, int]  # what the first backend takes by itself, of each GPU that it may be
    multiple: int  # a block must be a multiple of this for any backend to take it
    is_set: bool  # whether the resource says it

    @property
    def fast_multiple(self) -> int:
        """A multiple of this is taken by the first backend of every GPU."""
        return math.lcm(self.multiple, *self.by_gpu.values())

    @property
    def slow_on(self) -> tuple[Architecture, ...]:
        """GPUs whose first backend does not take it, so that vLLM falls to a slower one."""
        return tuple(gpu for gpu, block in self.by_gpu.items() if self.tokens % block) if self.is_set else ()


class Elements(StrEnum):
    """What the elements of a KV cache are, as far as backends differ by it."""

    OWN = "the model's own dtype"
    FP8 = "fp8"
    OTHER = "others of a byte or less"

    @classmethod
    def of(cls, dtype: KVCacheDtype) -> "Elements":
        """Those of a cache of this dtype."""
        if dtype in _OWN_DTYPES:
            return cls.OWN
        return cls.FP8 if dtype in _FP8_DTYPES else cls.OTHER


_OWN_DTYPES: Final = {KVCacheDtype.AUTO, KVCacheDtype.FLOAT16, KVCacheDtype.BFLOAT16}
_FP8_DTYPES: Final = {KVCacheDtype.FP8, KVCacheDtype.FP8_E4M3}
_LIKE_HEADS: Final = dict.fromkeys(Architecture, 16)
_IMAGES: Final = _LIKE_HEADS | {Architecture.BLACKWELL: 64}
_FIRST_BACKENDS: Final[Mapping[Attention, Mapping[Architecture, int]]] = {
    Attention.HEADS: _LIKE_HEADS,
    Attention.WIDE_HEADS: _LIKE_HEADS,
    Attention.IMAGE_HEADS: _IMAGES,
    Attention.WIDE_IMAGE_HEADS: _IMAGES,
    Attention.SPARSE_HEADS: dict.fromkeys(Architecture, 128),
    Attention.LATENT: _LIKE_HEADS | {Architecture.BLACKWELL: 32},
    # The indexer's backend takes 64 and nothing less (v1/attention/backends/mla/indexer.py).
    Attention.SPARSE_LATENT: dict.fromkeys(Architecture, 64),
}
"""The block of the first backend."""
_FIRST_BY_ELEMENTS: Final[Mapping[tuple[Attention, Elements], Mapping[Architecture, int]]] = {
    (Attention.LATENT, Elements.FP8): {Architecture.HOPPER: 64},
    (Attention.LATENT, Elements.OTHER): {Architecture.HOPPER: 64},
    # FlashAttention 4, which alone takes heads of more than 256 there, reads fp8 in pages of 64.
    (Attention.WIDE_HEADS, Elements.FP8): {Architecture.HOPPER: 64},
    (Attention.WIDE_IMAGE_HEADS, Elements.FP8): {Architecture.HOPPER: 64},
}
"""What is another where the elements are not the model's own."""
_MULTIPLE: Final = {
    Attention.HEADS: 16,
    Attention.WIDE_HEADS: 16,
    Attention.IMAGE_HEADS: 16,
    Attention.WIDE_IMAGE_HEADS: 16,
    Attention.SPARSE_HEADS: 128,
    Attention.LATENT: 16,  # TRITON_MLA, slow, but on every GPU
    Attention.SPARSE_LATENT: 64,
}
_CPU_MULTIPLE: Final = 32  # platforms/cpu.py and v1/attention/backends/cpu_attn.py
_IMAGE_DIMS: Final = frozenset({256, 512})
"""Widths of heads for which TRITON_FLASHINFER is the first backend of images on Blackwell, and
TRITON_FLASH_ATTN on Hopper."""
_WIDE_DIM: Final = 512
_LATENT_DIMS: Final = frozenset({320, 512, 576})
"""Widths that MLA backends but TRITON_MLA take (get_supported_head_sizes)."""


def attention_of(groups: Iterable[LayerGroup], *, images_both_ways: bool = False) -> Attention:
    """What decides the backend of a model's attention layers.

    Args:
        groups: All its layers.
        images_both_ways: Whether an image's tokens attend to one another in both directions.
    """
    kept = [group for group in groups if group.kind is not LayerKind.STATE]
    sparse = any(group.index_bytes for group in kept)
    if any(group.kind is LayerKind.MLA for group in kept):
        if sparse:
            return Attention.SPARSE_LATENT
        common = all(group.key_dim in _LATENT_DIMS for group in kept if group.kind is LayerKind.MLA)
        return Attention.LATENT if common else Attention.HEADS
    wide = any(group.key_dim == _WIDE_DIM for group in kept)
    if images_both_ways and all(group.key_dim in _IMAGE_DIMS for group in kept):
        return Attention.WIDE_IMAGE_HEADS if wide else Attention.IMAGE_HEADS
    if sparse:
        return Attention.SPARSE_HEADS
    return Attention.WIDE_HEADS if wide else Attention.HEADS


def choose_block(engine: EngineSpec, attention: Attention, dtype: KVCacheDtype) -> BlockChoice:
    """The block that vLLM takes for this engine, before it raises it for a linear-attention state."""
    if engine.device is Device.CPU:
        return BlockChoice(
            engine_block_tokens(engine), {}, _CPU_MULTIPLE, is_set=engine.block_size is not None
        )
    by_elements = _FIRST_BY_ELEMENTS.get((attention, Elements.of(dtype)), {})
    blocks, multiple = {**_FIRST_BACKENDS[attention], **by_elements}, _MULTIPLE[attention]
    needed, named = BACKENDS.get(named_backend(engine.extra_args), (None, 0))
    if needed is attention.of_backends:
        blocks, multiple = dict.fromkeys(Architecture, named), named
    if engine.architecture:
        blocks = {engine.architecture: blocks[engine.architecture]}
    tokens = engine.block_size or blocks[engine.architecture or Architecture.HOPPER]
    return BlockChoice(tokens, blocks, multiple, is_set=engine.block_size is not None)


def engine_block_tokens(engine: EngineSpec) -> int:
    """Tokens of a block where no backend wants another."""
    return engine.block_size or DEFAULT_BLOCK_TOKENS[engine.device]
