"""The shape of a model's KV cache and what one token of it costs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind, ModelShape

if TYPE_CHECKING:
    from kvtier_operator.api.resource import Spec
    from kvtier_operator.planning.observed import Observed

__all__ = ["Geometry", "LayerGroup", "LayerKind", "ModelShape", "resolve_geometry"]


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
        attention_heads: Query heads of one layer; None if not known.
        bytes_per_prefix: What each cached prefix takes beside its tokens, all ranks of one engine: the
            windows of sliding-window layers and the states of linear-attention layers.
        block_tokens: Tokens of one KV block as vLLM uses it; larger than what it is given where a
            linear-attention state needs a larger page.
        hybrid: Whether layers differ in what they keep, so that vLLM needs its hybrid cache manager.
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
    attention_heads: int | None = None
    bytes_per_prefix: int = 0
    block_tokens: int = 16
    hybrid: bool = False


def resolve_geometry(spec: "Spec", observed: "Observed") -> Geometry:
    """KV geometry of one engine, from the first of: the resource, the model's config.json, the catalogue.

    Raises:
        InvalidInputError: Nothing knows the model, or what is known cannot be sized.
    """
    from kvtier_operator.planning.kv_cost import kv_geometry  # noqa: PLC0415 - it builds this module's result
    from kvtier_operator.planning.model_shape.resolve import resolve_shape  # noqa: PLC0415 - as above

    return kv_geometry(resolve_shape(spec.model, observed), spec)
