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
    """KV geometry of one engine, for its tensor-parallel size and cache dtype."""

    source: str
    kv_bytes_per_token: int
