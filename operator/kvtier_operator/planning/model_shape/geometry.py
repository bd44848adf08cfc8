"""What one token of a model's KV cache costs in one engine."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvtier_operator.api.spec.engine import EngineSpec, KVCacheDtype
from kvtier_operator.planning.model_shape.block_tokens import Attention
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind, ModelShape

if TYPE_CHECKING:
    from kvtier_operator.planning.model_shape.layers.draft import Draft


@dataclass(frozen=True, slots=True)
class Geometry:
    """KV geometry of one engine, for its tensor-parallel size and cache dtype."""

    shape: ModelShape  # the model's, its layers merged and those of a draft among them
    cache_dtype: KVCacheDtype  # what the KV cache is kept in; `auto` is the dtype that the model computes in
    # bytes of one token in a tier, all ranks of one engine together, as vLLM stores it: heads that
    # ranks replicate count once a rank, an MLA latent counts once
    kv_bytes_per_token: int
    # bytes of one token in the device cache of one rank; an MLA latent is on every rank in full
    kv_bytes_per_token_per_rank: int
    weights_bytes: int | None  # size of the weights, all ranks together; None if not known
    experts_bytes: int | None  # of them, those of routed experts; None where nothing tells
    how: str  # how `kv_bytes_per_token` came about, numbers filled in
    notes: tuple[str, ...]  # what a reader of the report should know about this shape
    # tokens of one KV block as vLLM uses it; larger than what it is given where a linear-attention
    # state needs a larger page
    block_tokens: int
    # tokens of one block of each KV cache group, of those that keep all tokens first
    group_block_tokens: tuple[int, ...]
    attention: Attention = Attention.HEADS  # what decides the attention backend
    # what each cached prefix takes beside its tokens, all ranks of one engine: the windows of sliding-
    # window layers and the states of linear-attention layers
    bytes_per_prefix: int = 0
    # bytes of one block of the device's pool on one rank, of whichever group; 0 if not known
    block_bytes: int = 0
    # `kv_bytes_per_token` on one GPU or another, the least first, where only a running engine knows;
    # empty elsewhere
    kv_bytes_per_token_by_gpu: tuple[int, ...] = ()
    block_tokens_by_gpu: tuple[int, ...] = ()  # the same of `block_tokens`
    # whether a tier keeps one copy for all ranks: all layers keep latents, and ranks are vLLM's processes
    stored_once: bool = False
    draft: "Draft | None" = None  # what drafts tokens for it; None without speculative decoding

    @property
    def groups(self) -> tuple[LayerGroup, ...]:
        """Layers of the same shape, whole model, before any split over ranks."""
        return self.shape.groups

    @property
    def mla(self) -> bool:
        """Whether the cache has a latent that is not divided by the tensor-parallel size."""
        drafts = () if self.draft is None else self.draft.groups
        return self.keeps(LayerKind.MLA) and all(group.kind is LayerKind.MLA for group in drafts)

    @property
    def hybrid(self) -> bool:
        """Whether layers differ in what they keep, so that vLLM needs its hybrid cache manager."""
        return len({group.kind for group in self.groups}) > 1

    def longest_tokens(self, engine: EngineSpec) -> int | None:
        """The longest sequence: as the resource bounds it, else the model's; None if not known."""
        return engine.max_model_len or self.shape.max_position_tokens

    def keeps(self, *kinds: LayerKind) -> bool:
        """Whether any layer is of one of these kinds."""
        return any(group.kind in kinds for group in self.groups)

    @property
    def keeps_states(self) -> bool:
        """Whether a cached prefix has a state of linear attention, which vLLM keeps at the end of a block.

        A chunk of more blocks than one is stored only where a prompt happens to end at its end (0.32 and
        0.33: offloading/scheduler.py, _build_aligned_boundary_store_jobs).
        """
        return self.keeps(LayerKind.STATE)

    @property
    def whole_block_tokens(self) -> int:
        """Tokens of one block of the layers that keep all tokens, of which a backend counts its chunks."""
        return self.group_block_tokens[0]
