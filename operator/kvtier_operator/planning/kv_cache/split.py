"""How a block's bytes are split among ranks and layers."""

from dataclasses import dataclass, replace
from typing import Final

from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.api.spec.engine import EngineSpec, KVCacheDtype
from kvtier_operator.api.spec.gpu import Architecture
from kvtier_operator.planning.model_shape.block_tokens import Elements
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind, ModelShape
from kvtier_operator.planning.units import ceil_div

# Scales that vLLM stores beside the elements count (AttentionSpec.state_content_size_bytes, as the
# attention backends' customize_spec makes it); scales of a whole layer are one number, and do not.
_ELEMENT_BYTES: Final = {
    KVCacheDtype.FLOAT16: 2,
    KVCacheDtype.BFLOAT16: 2,
    KVCacheDtype.FP8: 1,
    KVCacheDtype.FP8_E4M3: 1,
    KVCacheDtype.FP8_E5M2: 1,
    KVCacheDtype.FP8_INC: 1,
}
# A latent of DeepSeek's size as one piece: its elements, their scales and the rotary key
# (vLLM, layers/attention/mla_attention.py, get_kv_cache_spec; backends/mla/flashmla_sparse.py).
_PACKED_LATENT_BYTES: Final = {KVCacheDtype.FP8_DS_MLA: 656, KVCacheDtype.NVFP4_DS_MLA: 352}
# Bits of one element, with a float32 scale for the key and one for the value of each token and head
# (vLLM, backends/triton_attn.py, customize_spec).
_PER_TOKEN_HEAD_BITS: Final = {
    KVCacheDtype.INT4_PER_TOKEN_HEAD: 4,
    KVCacheDtype.INT8_PER_TOKEN_HEAD: 8,
    KVCacheDtype.FP8_PER_TOKEN_HEAD: 8,
}
_FLOAT32_BYTES: Final = 4
# Bits of a key and of a value (vLLM, layers/quantization/turboquant/config.py, TQ_PRESETS). A key of less
# than 8 bits has a norm of 2 bytes, a value its scale and zero point in 4.
_TURBOQUANT_BITS: Final = {
    KVCacheDtype.TURBOQUANT_K8V4: (8, 4),
    KVCacheDtype.TURBOQUANT_4BIT_NC: (4, 4),
    KVCacheDtype.TURBOQUANT_K3V4_NC: (3, 4),
    KVCacheDtype.TURBOQUANT_3BIT_NC: (3, 3),
}
_TURBOQUANT_NORM_BYTES: Final = 2
_TURBOQUANT_VALUE_BYTES: Final = 4
_BYTE_BITS: Final = 8
# Elements that share a one-byte scale (vLLM, utils/torch_utils.py, nvfp4_kv_cache_full_dim;
# v1/attention/ops/ultraquant/format.py, slot_size).
_SCALED_TOGETHER: Final = {
    KVCacheDtype.NVFP4: 16,
    KVCacheDtype.NVFP4_4OVER6: 16,
    KVCacheDtype.ULTRAQUANT_4BIT: 32,
}

BOUNDARY_LAYERS: Final = 2
"""First and last layers that `packs_keys_and_values` leaves in the model's own dtype
(vLLM, layers/quantization/turboquant/config.py, get_boundary_skip_layers)."""


def cell_bytes(dtype: KVCacheDtype, key_dim: int, value_dim: int, own_bytes: int) -> int:
    """Bytes of one token in one head, key and value, or in one latent.

    Args:
        dtype: Of the cache, as `--kv-cache-dtype` names it.
        key_dim: Size of the key, or of the latent with its rotary key.
        value_dim: Size of the value; 0 for a latent, which is both.
        own_bytes: Bytes of one element in the dtype that the model computes in, for `auto`.
    """
    if dtype in _PACKED_LATENT_BYTES:
        return _PACKED_LATENT_BYTES[dtype]
    if bits := _PER_TOKEN_HEAD_BITS.get(dtype):
        return key_dim * bits // _BYTE_BITS + value_dim * bits // _BYTE_BITS + 2 * _FLOAT32_BYTES
    if dtype in _TURBOQUANT_BITS:
        return _turboquant_bytes(*_TURBOQUANT_BITS[dtype], key_dim, value_dim)
    if together := _SCALED_TOGETHER.get(dtype):
        return sum(dim // 2 + dim // together for dim in (key_dim, value_dim))
    return (key_dim + value_dim) * _ELEMENT_BYTES.get(dtype, own_bytes)


def packs_keys_and_values(dtype: KVCacheDtype) -> bool:
    """Whether a key and its value are one piece, which vLLM keeps the first and the last layers out of."""
    return dtype in _TURBOQUANT_BITS or dtype is KVCacheDtype.ULTRAQUANT_4BIT


def _turboquant_bytes(key_bits: int, value_bits: int, key_dim: int, value_dim: int) -> int:
    norm = 0 if key_bits == _BYTE_BITS else _TURBOQUANT_NORM_BYTES
    key = ceil_div(key_dim * key_bits, _BYTE_BITS) + norm
    value = ceil_div(value_dim * value_bits, _BYTE_BITS) + _TURBOQUANT_VALUE_BYTES
    return ceil_div(key + value, 2) * 2


STATE_DTYPE: Final = "--mamba-cache-dtype"
RECURRENT_DTYPE: Final = "--mamba-ssm-cache-dtype"
_FLOAT_BYTES: Final = {"float32": 4, "float": 4, "half": 2, "float16": 2, "bfloat16": 2}


EXECUTOR: Final = "--distributed-executor-backend"
ENGINES_BY: Final = "--data-parallel-backend"
_EXECUTORS: Final = frozenset({None, "", "None", "mp"})


def has_own_executor(arguments: CommandLine) -> bool:
    """Whether ranks are vLLM's own processes, as a tier that keeps one latent for all of them needs."""
    return arguments.value(EXECUTOR) in _EXECUTORS and arguments.value(ENGINES_BY) != "ray"


@dataclass(frozen=True, slots=True)
class Split:
    """One engine's ranks and dtypes."""

    ranks: int  # that share each layer
    dtype: KVCacheDtype  # of the cache
    sparse_dtype: KVCacheDtype  # in which sparse MLA keeps its latents
    own_bytes: int  # of one element of the dtype that the model computes in
    conv_bytes: int  # of one element of a state's convolution
    state_dtype_bytes: int  # of one element of a recurrent state where the engine is told; 0 otherwise
    # whether a tier keeps one copy for all ranks: only if every layer's pages are equal on all of them,
    # as in vLLM's offloading/config.py: replicated_layout
    stored_once: bool

    @classmethod
    def of(cls, shape: ModelShape, engine: EngineSpec) -> "Split":
        """What the engine's arguments make of this model."""
        dtype, arguments = resolve_cache_dtype(shape, engine), engine.extra_args
        own_bytes = _FLOAT_BYTES.get(arguments.value("--dtype") or "", shape.dtype_bytes)
        return cls(
            ranks=engine.tensor_parallel_size,
            dtype=dtype,
            sparse_dtype=KVCacheDtype.FP8_DS_MLA if Elements.of(dtype) is Elements.FP8 else dtype,
            own_bytes=own_bytes,
            conv_bytes=_FLOAT_BYTES.get(arguments.value(STATE_DTYPE) or "", own_bytes),
            state_dtype_bytes=_FLOAT_BYTES.get(arguments.value(RECURRENT_DTYPE) or "", 0),
            stored_once=shape.keeps_latents_alone and has_own_executor(arguments),
        )

    @property
    def copies(self) -> int:
        """How often a tier keeps what one rank has."""
        return 1 if self.stored_once else self.ranks

    def heads_per_rank(self, group: LayerGroup) -> int:
        """Key/value heads of one layer on one rank."""
        return 1 if group.kind is LayerKind.MLA else max(1, ceil_div(group.kv_heads, self.ranks))

    def kept_as(self, group: LayerGroup) -> KVCacheDtype:
        """Dtype in which layers of this group are kept."""
        if group.own_dtype:
            return KVCacheDtype.AUTO
        if group.sparse_heads and Elements.of(self.dtype) is not Elements.OWN:
            return KVCacheDtype.FP8  # of a byte, without scales (vLLM, models/minimax_m3/nvidia/model.py)
        return self.sparse_dtype if group.sparse else self.dtype

    def cell_bytes(self, group: LayerGroup) -> int:
        """Bytes of one token in one head, or in one latent."""
        return cell_bytes(self.kept_as(group), group.key_dim, group.value_dim, self.own_bytes)

    def token_bytes(self, group: LayerGroup) -> int:
        """Bytes of one token in one layer on one rank, without its indexer."""
        return self.heads_per_rank(group) * self.cell_bytes(group)

    def state_bytes(self, group: LayerGroup, draft_tokens: int) -> int:
        """Bytes of one layer's state on one rank; 0 where it is not known."""
        if group.state is None:
            return 0
        return group.state.rank_bytes(self.ranks, self.conv_bytes, self.state_dtype_bytes, draft_tokens)


def split_on(gpu: Architecture, split: Split, shape: ModelShape) -> Split:
    """The same engine on a GPU of this architecture, which decides how sparse MLA is kept.

    - fp8 is packed with its scales (layers/attention/mla_attention.py,
      _canonicalize_sparse_mla_kv_cache_dtype), but plain on Blackwell's data-centre GPUs, whose FlashInfer
      reads no packed one (platforms/cuda.py, _get_backend_priorities).
    - auto is packed fp8 on Blackwell's workstation GPUs (FLASHINFER_MLA_SPARSE_SM120), and plain fp8 on the
      data-centre GPUs for GLM (models/config.py, GlmMoeDsaForCausalLM).
    """
    auto = split.dtype is KVCacheDtype.AUTO
    if gpu is Architecture.BLACKWELL and (
        Elements.of(split.dtype) is Elements.FP8 or (auto and shape.fp8_by_gpu)
    ):
        return replace(split, sparse_dtype=KVCacheDtype.FP8)
    if gpu is Architecture.BLACKWELL_WORKSTATION and auto:
        return replace(split, sparse_dtype=KVCacheDtype.FP8_DS_MLA)
    return split


def resolve_cache_dtype(shape: ModelShape, engine: EngineSpec) -> KVCacheDtype:
    """What the cache is kept in: what the resource says, then what the checkpoint says."""
    if engine.kv_cache_dtype is not KVCacheDtype.AUTO:
        return engine.kv_cache_dtype
    return shape.cache_dtype


def boundaries_apart(shape: ModelShape, engine: EngineSpec) -> ModelShape:
    """The shape, with the layers that a packed dtype leaves in the model's own as a group of their own.

    A model whose layers but the first attend to few tokens has packed ones among the first alone.
    """
    if shape.state_of_class is not None:  # vLLM takes it for a model with states
        return shape
    packed = [group for group in shape.groups if not group.sparse_heads]
    if not packs_keys_and_values(resolve_cache_dtype(shape, engine)) or len(packed) != 1:
        return shape  # a model with states has no such layers
    (group,) = packed
    ends = 1 if len(shape.groups) > 1 else 2
    apart = min(ends * BOUNDARY_LAYERS, group.layers)
    divided = (replace(group, layers=group.layers - apart), replace(group, layers=apart, own_dtype=True))
    groups = (*divided, *(group for group in shape.groups if group.sparse_heads))
    return replace(shape, groups=tuple(group for group in groups if group.layers))
