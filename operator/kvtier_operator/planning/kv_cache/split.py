"""How one engine divides a model's layers over its ranks: bytes of a token, and of a state, on one rank.

A page of one layer is heads x tokens x what one head keeps of a token, heads of a rank being
max(1, heads // tensor_parallel_size) (vLLM, v1/kv_cache_interface.py, AttentionSpec; config/model.py,
get_num_kv_heads). An MLA page is one latent, on every rank in full (MLAAttentionSpec, num_kv_heads=1).
"""

from dataclasses import dataclass, replace
from typing import Final

from kvtier_operator.api.spec.engine import EngineSpec, KVCacheDtype
from kvtier_operator.planning.arguments.extra_args import value_of
from kvtier_operator.planning.kv_cache.cell import BOUNDARY_LAYERS, cell_bytes, packs_keys_and_values
from kvtier_operator.planning.model_shape.block_tokens import Architecture, Elements
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind, ModelShape
from kvtier_operator.planning.units import ceil_div

STATE_DTYPE: Final = "--mamba-cache-dtype"
RECURRENT_DTYPE: Final = "--mamba-ssm-cache-dtype"
_FLOAT_BYTES: Final = {"float32": 4, "float": 4, "half": 2, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Split:
    """One engine's ranks and dtypes.

    Attributes:
        ranks: That share each layer.
        dtype: Of the cache.
        sparse_dtype: In which sparse MLA keeps its latents.
        own_bytes: Of one element of the dtype that the model computes in.
        conv_bytes: Of one element of a state's convolution.
        state_dtype_bytes: Of one element of a recurrent state where the engine is told; 0 otherwise.
        stored_once: Whether a tier keeps one copy for all ranks: only if every layer's pages are equal on
            all of them (vLLM, offloading/config.py, replicated_layout).
    """

    ranks: int
    dtype: KVCacheDtype
    sparse_dtype: KVCacheDtype
    own_bytes: int
    conv_bytes: int
    state_dtype_bytes: int
    stored_once: bool

    @classmethod
    def of(cls, shape: ModelShape, engine: EngineSpec) -> "Split":
        """What the engine's arguments make of this model."""
        dtype, arguments = resolve_cache_dtype(shape, engine), engine.extra_args
        own_bytes = _FLOAT_BYTES.get(value_of(arguments, "--dtype") or "", shape.dtype_bytes)
        return cls(
            ranks=engine.tensor_parallel_size,
            dtype=dtype,
            sparse_dtype=KVCacheDtype.FP8_DS_MLA if Elements.of(dtype) is Elements.FP8 else dtype,
            own_bytes=own_bytes,
            conv_bytes=_FLOAT_BYTES.get(value_of(arguments, STATE_DTYPE) or "", own_bytes),
            state_dtype_bytes=_FLOAT_BYTES.get(value_of(arguments, RECURRENT_DTYPE) or "", 0),
            stored_once=bool(shape.groups) and all(group.kind is LayerKind.MLA for group in shape.groups),
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
    packed = [group for group in shape.groups if not group.sparse_heads]
    if not packs_keys_and_values(resolve_cache_dtype(shape, engine)) or len(packed) != 1:
        return shape  # a model with states has no such layers
    (group,) = packed
    ends = 1 if len(shape.groups) > 1 else 2
    apart = min(ends * BOUNDARY_LAYERS, group.layers)
    divided = (replace(group, layers=group.layers - apart), replace(group, layers=apart, own_dtype=True))
    groups = (*divided, *(each for each in shape.groups if each.sparse_heads))
    return replace(shape, groups=tuple(each for each in groups if each.layers))
