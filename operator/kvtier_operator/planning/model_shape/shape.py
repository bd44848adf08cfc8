"""The shape of a model, before any engine splits it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from kvtier_operator.api.spec.engine import KVCacheDtype
from kvtier_operator.planning.model_shape.parameters.experts import Experts
from kvtier_operator.planning.model_shape.state import State

if TYPE_CHECKING:
    from kvtier_operator.planning.model_shape.parameters.arithmetic import Arithmetic

CATALOGUE: Final = "catalogue"
"""How the source of a shape begins that kvtier has itself."""


class LayerKind(StrEnum):
    """How a layer keeps its past."""

    FULL = "full"
    SLIDING = "sliding"
    MLA = "mla"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Layers of the same shape.

    Attributes:
        kind: How they keep their past.
        layers: How many.
        kv_heads: Key/value heads of one layer; 1 for MLA, 0 for a state.
        key_dim: Size of one key head; latent plus rotary key for MLA.
        value_dim: Size of one value head; 0 for MLA (the latent is both).
        window_tokens: Window of sliding layers; 0 otherwise.
        state: Fixed state of one layer and sequence; None where tokens are kept, or where it is not known.
        index_bytes: Further bytes that one layer keeps of each token whatever the cache's dtype, such as
            the keys of a sparse-attention indexer.
        sparse: Whether MLA attends to few tokens that an indexer chose, here or in an earlier layer.
        draft: Whether they belong to the model that drafts tokens for this one.
        own_dtype: Whether they are kept in the model's own dtype whatever the cache's is.
    """

    kind: LayerKind
    layers: int
    kv_heads: int
    key_dim: int
    value_dim: int
    window_tokens: int = 0
    state: State | None = None
    index_bytes: int = 0
    sparse: bool = False
    draft: bool = False
    own_dtype: bool = False

    @property
    def sparse_heads(self) -> bool:
        """Whether they keep keys and values, and attend to few tokens that an indexer chose."""
        return self.index_bytes > 0 and self.kind is not LayerKind.MLA

    @property
    def elements_per_token(self) -> int:
        """Cache elements that one layer keeps of one token, all heads, before any split over ranks."""
        return self.kv_heads * (self.key_dim + self.value_dim)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A model as its publisher describes it.

    Attributes:
        source: Where the shape came from, for the report.
        groups: Layers of the same shape; empty where only `bytes_per_token` is known.
        dtype_bytes: Bytes of one element of the model's own dtype.
        cache_dtype: What the checkpoint says its cache is kept in, where the resource does not say.
        computes_in: The dtype that it is published in, such as bfloat16; empty if not known.
        has_cache_scales: Whether the checkpoint brings scales of an fp8 cache.
        attention_heads: Query heads of one layer; None if not known.
        max_position_tokens: Longest sequence; None if not known.
        most_position_tokens: Longest sequence that vLLM takes when asked; None if not known.
        weights_bytes: Size of the weights; None if not known.
        experts: The routed experts among the weights; None where nothing tells them.
        is_quantised: Whether the checkpoint is; None if not known.
        bytes_per_token: Bytes of one token, where the resource gives nothing finer.
        chunked_attention: Whether some layers attend within chunks only (Llama 4).
        draft_tokens: Speculative tokens of one step; 0 where none are drafted.
        state_alignment_tokens: What a block is a multiple of where states are exported inside a prefill.
        fp8_by_gpu: Whether vLLM takes fp8 for `auto` on some GPUs.
        kv_heads_replicated: Whether more ranks than KV heads have copies of them.
        images_both_ways: Whether an image's tokens attend to one another in both directions.
        has_sinks: Whether attention has learned logits beside those of its tokens.
        unknown_architecture: Name of the model's class where vLLM has none of that name.
        arithmetic: What computes one token; None where only the weights tell.
        parameter_bits: Of one parameter in the checkpoint.
        hidden_size: Width of the model between its layers; None if not known.
        matrices: Matrices of all its layers, those of every expert; None if not known.
        notes: What a reader of the report should know.
    """

    source: str
    groups: tuple[LayerGroup, ...]
    dtype_bytes: int = 2
    cache_dtype: KVCacheDtype = KVCacheDtype.AUTO
    has_cache_scales: bool = False
    computes_in: str = ""
    attention_heads: int | None = None
    max_position_tokens: int | None = None
    most_position_tokens: int | None = None
    weights_bytes: int | None = None
    experts: Experts | None = None
    is_quantised: bool | None = None
    bytes_per_token: int | None = None
    chunked_attention: bool = False
    draft_tokens: int = 0
    state_alignment_tokens: int = 1
    fp8_by_gpu: bool = False
    kv_heads_replicated: bool = True
    images_both_ways: bool = False
    has_sinks: bool = False
    unknown_architecture: str = ""
    arithmetic: "Arithmetic | None" = None
    parameter_bits: int = 16
    hidden_size: int | None = None
    matrices: int | None = None
    notes: tuple[str, ...] = ()
