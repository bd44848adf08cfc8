"""The shape of a model's KV cache and what one token of it costs."""

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
    """

    kind: LayerKind
    layers: int
    kv_heads: int
    key_dim: int
    value_dim: int
    window_tokens: int = 0
    state_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Geometry:
    """KV geometry of one engine, for its tensor-parallel size and cache dtype.

    Attributes:
        source: Where the shape came from, for the report: a field, a file or the catalogue with its entry.
        groups: Layers of the same shape, whole model, before any split over ranks.
        cache_dtype_bytes: Bytes of one element of the KV cache.
        tensor_parallel_size: Ranks that share each layer.
        kv_bytes_per_token: Bytes of one token in a tier, all ranks of one engine together, as vLLM stores
            it: heads that ranks replicate count once a rank, an MLA latent counts once.
        kv_bytes_per_token_per_rank: Bytes of one token in the device cache of one rank; an MLA latent is
            on every rank in full.
        mla: Whether the cache is a latent that is not divided by the tensor-parallel size.
        weights_bytes: Size of the weights, all ranks together; None if not known.
        max_position_tokens: Longest sequence of the model; None if not known.
        how: How `kv_bytes_per_token` came about, numbers filled in.
        notes: What a reader of the report should know about this shape.
    """

    source: str
    groups: tuple[LayerGroup, ...]
    cache_dtype_bytes: int
    tensor_parallel_size: int
    kv_bytes_per_token: int
    kv_bytes_per_token_per_rank: int
    mla: bool
    weights_bytes: int | None
    max_position_tokens: int | None
    how: str = ""
    notes: tuple[str, ...] = ()
