"""The shape of a model's KV cache and what one token of it costs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvtier_operator.api.spec.engine import KVCacheDtype
from kvtier_operator.planning.model_shape.attention_backend import Attention
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind, ModelShape

if TYPE_CHECKING:
    from kvtier_operator.planning.model_shape.layers.draft import Draft
    from kvtier_operator.planning.model_shape.shape import Arithmetic


__all__ = ["Geometry", "LayerGroup", "LayerKind", "ModelShape"]


@dataclass(frozen=True, slots=True)
class Geometry:
    """KV geometry of one engine, for its tensor-parallel size and cache dtype.

    Attributes:
        source: Where the shape came from, for the report: a field, a file or the catalogue with its entry.
        groups: Layers of the same shape, whole model, before any split over ranks.
        cache_dtype: What the KV cache is kept in; `auto` is the dtype that the model computes in.
        tensor_parallel_size: Ranks that share each layer.
        kv_bytes_per_token: Bytes of one token in a tier, all ranks of one engine together, as vLLM stores
            it: heads that ranks replicate count once a rank, an MLA latent counts once.
        kv_bytes_per_token_per_rank: Bytes of one token in the device cache of one rank; an MLA latent is
            on every rank in full.
        mla: Whether the cache is a latent that is not divided by the tensor-parallel size.
        weights_bytes: Size of the weights, all ranks together; None if not known.
        experts_bytes: Of them, those of routed experts; None where nothing tells.
        is_quantised: Whether the weights are, as published; None if not known.
        max_position_tokens: Longest sequence of the model; None if not known.
        most_position_tokens: Longest sequence that vLLM takes when asked; None if not known.
        how: How `kv_bytes_per_token` came about, numbers filled in.
        notes: What a reader of the report should know about this shape.
        attention_heads: Query heads of one layer; None if not known.
        attention: What decides the attention backend.
        bytes_per_prefix: What each cached prefix takes beside its tokens, all ranks of one engine: the
            windows of sliding-window layers and the states of linear-attention layers.
        block_tokens: Tokens of one KV block as vLLM uses it; larger than what it is given where a
            linear-attention state needs a larger page.
        hybrid: Whether layers differ in what they keep, so that vLLM needs its hybrid cache manager.
        draft: What drafts tokens for it; None without speculative decoding.
        kv_heads_replicated: Whether more ranks than KV heads have copies of them.
        computes_in: The dtype that the model is published in; empty if not known.
        has_cache_scales: Whether the checkpoint brings scales of an fp8 cache.
        unknown_architecture: Name of the model's class where vLLM has none of that name.
        group_block_tokens: Tokens of one block of each KV cache group, of those that keep all tokens first.
        stored_once: Whether a tier keeps one copy for all ranks: every layer keeps a latent.
        kv_bytes_per_token_by_gpu: `kv_bytes_per_token` on one GPU or another, the least first, where only a
            running engine knows; empty elsewhere.
        block_tokens_by_gpu: The same of `block_tokens`.
        has_sinks: Whether attention has learned logits beside those of its tokens.
        arithmetic: What computes one token; None where only the weights tell.
        parameter_bits: Of one parameter in the checkpoint.
        hidden_size: Width of the model between its layers; None if not known.
        matrices: Matrices of all its layers, those of every expert; None if not known.
        block_bytes: Bytes of one block of the device's pool on one rank, of whichever group; 0 if not known.
    """

    source: str
    groups: tuple[LayerGroup, ...]
    cache_dtype: KVCacheDtype
    tensor_parallel_size: int
    kv_bytes_per_token: int
    kv_bytes_per_token_per_rank: int
    mla: bool
    weights_bytes: int | None
    max_position_tokens: int | None
    most_position_tokens: int | None = None
    how: str = ""
    experts_bytes: int | None = None
    is_quantised: bool | None = None
    notes: tuple[str, ...] = ()
    attention_heads: int | None = None
    attention: Attention = Attention.HEADS
    bytes_per_prefix: int = 0
    block_tokens: int = 16
    hybrid: bool = False
    draft: "Draft | None" = None
    has_cache_scales: bool = False
    computes_in: str = ""
    kv_heads_replicated: bool = True
    unknown_architecture: str = ""
    group_block_tokens: tuple[int, ...] = (16,)
    stored_once: bool = False
    kv_bytes_per_token_by_gpu: tuple[int, ...] = ()
    block_tokens_by_gpu: tuple[int, ...] = ()
    has_sinks: bool = False
    block_bytes: int = 0
    arithmetic: "Arithmetic | None" = None
    parameter_bits: int = 16
    hidden_size: int | None = None
    matrices: int | None = None

    @property
    def keeps_states(self) -> bool:
        """Whether a cached prefix has a state of linear attention, which vLLM keeps at the end of a block.

        A chunk of more blocks than one is stored only where a prompt happens to end at its end (0.32 and
        0.33: offloading/scheduler.py, _build_aligned_boundary_store_jobs).
        """
        return any(group.kind is LayerKind.STATE for group in self.groups)

    @property
    def whole_block_tokens(self) -> int:
        """Tokens of one block of the layers that keep all tokens, of which a backend counts its chunks."""
        return self.group_block_tokens[0]
