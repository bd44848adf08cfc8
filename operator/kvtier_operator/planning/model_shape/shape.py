"""The shape of a model, before any engine splits it."""

from dataclasses import dataclass
from enum import StrEnum


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
        state_bytes: Fixed state of one layer and sequence; 0 where tokens are kept.
        index_bytes: Further bytes that one layer keeps of each token whatever the cache's dtype, such as
            the keys of a sparse-attention indexer.
    """

    kind: LayerKind
    layers: int
    kv_heads: int
    key_dim: int
    value_dim: int
    window_tokens: int = 0
    state_bytes: int = 0
    index_bytes: int = 0

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
        dtype_bytes: Bytes of one cache element where the engine does not say otherwise.
        attention_heads: Query heads of one layer; None if not known.
        max_position_tokens: Longest sequence; None if not known.
        weights_bytes: Size of the weights; None if not known.
        bytes_per_token: Bytes of one token, where the resource gives nothing finer.
        chunked_attention: Whether some layers attend within chunks only (Llama 4).
        notes: What a reader of the report should know.
    """

    source: str
    groups: tuple[LayerGroup, ...]
    dtype_bytes: int = 2
    attention_heads: int | None = None
    max_position_tokens: int | None = None
    weights_bytes: int | None = None
    bytes_per_token: int | None = None
    chunked_attention: bool = False
    notes: tuple[str, ...] = ()
