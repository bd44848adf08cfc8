"""Bytes of a token and of a prefix, with how they came about."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device, KVCacheDtype
from kvtier_operator.api.spec.gpu import Architecture
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.arguments.speculation import DROPS_LAST_BLOCK, speculation
from kvtier_operator.planning.backends import any_backend_that, traits_of
from kvtier_operator.planning.kv_cache.blocks import (
    KVGroup,
    KVGroups,
    LayerPages,
    StatePage,
    boundary_block_tokens,
    get_kv_cache_groups,
    state_block_tokens,
)
from kvtier_operator.planning.kv_cache.split import Split, packs_keys_and_values
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind, ModelShape
from kvtier_operator.planning.units import ceil_div, count, size

_ALLOW_CHUNKS: Final = "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE"


def explain_token_bytes(group: LayerGroup, layers: int, split: Split) -> str:
    """Bytes of one token in so many layers, numbers filled in."""
    padded = f" (of {group.layers}, padded to the other groups' size)" if layers != group.layers else ""
    cell, elements = split.cell_bytes(group), group.key_dim + group.value_dim
    packed = cell % elements != 0  # scales beside the elements: the sum says more than its parts
    index = f" + {layers} x {group.index_bytes} B of indexer" if group.index_bytes else ""
    ranks = f" x {split.copies} ranks" if split.copies > 1 else ""
    if group.kind is LayerKind.MLA:
        latent = f"{cell} B" if packed else f"{group.key_dim} x {cell // elements} B"
        return f"{layers} layers{padded} x {latent}{ranks}{index}{ranks if index else ''}"
    heads = split.heads_per_rank(group) * split.ranks
    replicas = f" ({group.kv_heads} replicated over {split.ranks} ranks)" if heads != group.kv_heads else ""
    after = f"{index}{ranks if index else ''}"
    if packed:
        return f"{layers} layers{padded} x {heads} heads{replicas} x {cell} B ({split.kept_as(group)}){after}"
    same = group.key_dim == group.value_dim
    dims = f"{group.key_dim}" if same else f"({group.key_dim} + {group.value_dim})"
    factor = "2 x " if same else ""
    own = f"{factor}{layers} layers{padded} x {heads} heads{replicas} x {dims} x {cell // elements} B"
    return f"{own}{after}"


def name_partial_layers(group: LayerGroup, split: Split, draft_tokens: int) -> str:
    """Layers that keep only a part of a prefix, by kind and size."""
    if group.kind is LayerKind.STATE:
        state = size(split.state_bytes(group, draft_tokens) * split.ranks)
        return f"{group.layers} linear-attention layers ({state} of state each)"
    return f"{group.layers} sliding-window layers (window {count(group.window_tokens)})"


def turns_off_for_chunks(spec: Spec, shape: ModelShape) -> bool:
    """Whether vLLM keeps chunked attention without its hybrid cache manager (config/vllm.py).

    It does with a draft of EAGLE's kind, and where VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE is 0.
    """
    asked = speculation(spec.engine.extra_args) if shape.draft_tokens else None
    denied = any(variable.name == _ALLOW_CHUNKS and variable.value == "0" for variable in spec.engine.env)
    return shape.chunked_attention and (denied or (asked is not None and asked.method in DROPS_LAST_BLOCK))


def why_full(shape: ModelShape, spec: Spec) -> str:
    """Why layers with a window keep every token."""
    if not any(group.kind.keeps_tokens for group in shape.groups):
        window = max(group.window_tokens for group in shape.groups)
        return f"every layer has a window: of a longer prompt only the last {count(window)} tokens are kept"
    traits = traits_of(spec.backend)
    if traits.no_hybrid_manager:
        reason = f"{traits.title} turns vLLM's hybrid cache manager off"
    elif turns_off_for_chunks(spec, shape):
        reason = "vLLM turns its hybrid cache manager off for chunked attention here"
    else:
        reason = "spec.engine.extraArgs turns vLLM's hybrid cache manager off"
    return f"{reason}, so sliding-window layers keep every token"


def explain_gpu_differences(
    values: Mapping[Architecture, Sequence[int]], what: str, planned: str, then: str = ""
) -> tuple[str, ...]:
    """What only a running engine knows, one line; nothing where all GPUs and minors agree.

    Args:
        values: On each GPU; two where vLLM's minors differ.
        what: The GPU decides.
        planned: What the plan takes.
        then: What to do about it.
    """
    gpus: dict[tuple[int, ...], list[str]] = {}
    for gpu, numbers in values.items():
        gpus.setdefault(tuple(dict.fromkeys(numbers)), []).append(gpu)
    if len(gpus) <= 1 and all(len(numbers) == 1 for numbers in gpus):
        return ()
    by_gpu = ", ".join(
        f"{' (vLLM 0.33: '.join(count(value) for value in numbers)}{')' * (len(numbers) - 1)} on "
        f"{' and '.join(gpus[numbers])}"
        for numbers in sorted(gpus)
    )
    decides = "the GPU" if len(gpus) > 1 else "vLLM's minor"
    line = (
        f"{decides} decides {what}, which a plan cannot know: {by_gpu}; planned with {planned}, and the "
        f"picker follows what a running engine says{then}"
    )
    return (line,)


_SPARSE_PAGE_TOKENS: Final = 64  # vLLM, v1/attention/backends/mla/flashmla_sparse.py, indexer.py


@dataclass(frozen=True, slots=True)
class KVCost:
    """Bytes of one rank."""

    block_tokens: int  # tokens of one block, raised for a state where there is one
    groups: KVGroups  # the KV cache groups
    token_bytes: int  # of one token
    prefix_bytes: int  # of what a cached prefix keeps beside its tokens: windows and states


@dataclass(frozen=True, slots=True)
class Sizing:
    """A model in an engine."""

    shape: ModelShape  # the model
    layers: tuple[LayerGroup, ...]  # its layers as vLLM's cache manager takes them
    spec: Spec  # what is wanted
    split: Split  # how the engine divides them

    def cost(self, tokens: int, multiple_of: int = 1) -> KVCost:
        """Bytes of a token and of a prefix.

        Args:
            tokens: Of a block, before it is raised for a state.
            multiple_of: Tokens that a raised block is a multiple of.

        Raises:
            InvalidInputError: vLLM finds no block for all layers.
        """
        packs = packs_keys_and_values(self.split.dtype)
        if packs and any(group.own_dtype for group in self.shape.groups):
            tokens = boundary_block_tokens(tokens, self.spec.engine.device, self.split.own_bytes)
        page = self._state_page(multiple_of)
        if page.state_bytes and page.token_bytes:
            tokens = state_block_tokens(tokens, self.spec.engine.device, page)
        groups = get_kv_cache_groups(
            self._pages(tokens, tokens * page.token_bytes), block_outermost=self._block_outermost
        )
        if groups is None:
            raise InvalidInputError(
                self.shape.source,
                Problem(
                    "spec.model.name",
                    "vLLM finds no size of a block that suits all layers of this model, and does not start: "
                    f"set spec.backend to {any_backend_that(lambda traits: traits.blocks_outermost)}, which "
                    "keeps unlike layers beside each other, or leave the draft model out",
                ),
            )
        full = any(group.kind.keeps_tokens for group in groups.groups)
        token_bytes = sum(
            ceil_div(groups.block_bytes * group.groups, group.block_tokens)
            for group in groups.groups
            if group.kind.keeps_tokens or (not full and group.kind is LayerKind.SLIDING)
        )
        blocks = sum(_prefix_blocks(group) for group in groups.groups if full)
        return KVCost(tokens, groups, token_bytes, blocks * groups.block_bytes)

    def _state_page(self, multiple_of: int) -> StatePage:
        """What a block must hold; vLLM does not ask the layers of a draft."""
        attention = [
            group for group in self.shape.groups if group.kind is not LayerKind.STATE and not group.draft
        ]
        return StatePage(
            state_bytes=max(self._class_bytes(), *(self._state_bytes(group) for group in self.shape.groups)),
            token_bytes=max((self.split.token_bytes(group) for group in attention), default=0),
            latent=any(group.kind is LayerKind.MLA for group in attention),
            multiple_of=multiple_of,
        )

    def _class_bytes(self) -> int:
        state, split = self.shape.state_of_class, self.split
        if state is None:
            return 0
        drafted = self.shape.draft_tokens
        return state.rank_bytes(split.ranks, split.conv_bytes, split.state_dtype_bytes, drafted)

    def _state_bytes(self, group: LayerGroup) -> int:
        return self.split.state_bytes(group, self.shape.draft_tokens)

    def _pages(self, tokens: int, own_bytes: int) -> list[LayerPages]:
        """Pages of every layer; a state's are as large as those of the model's own attention layers."""
        pages = []
        for layer in self.layers:
            if layer.kind is LayerKind.STATE:
                page_bytes = max(own_bytes, self._state_bytes(layer))
            else:
                page_bytes = tokens * self.split.token_bytes(layer)
            pages.append(
                LayerPages(
                    layer.kind,
                    layer.layers,
                    tokens,
                    page_bytes,
                    layer.window_tokens,
                    self._alignment_bytes(layer, tokens, self.split.token_bytes(layer)),
                )
            )
            if layer.index_bytes:
                page_bytes = tokens * layer.index_bytes
                apart = self._alignment_bytes(layer, tokens, layer.index_bytes)
                pages.append(LayerPages(LayerKind.MLA, layer.layers, tokens, page_bytes, 0, apart))
        return pages

    def _alignment_bytes(self, layer: LayerGroup, tokens: int, token_bytes: int) -> int:
        """Kernels of packed sparse MLA read pages of 64 tokens, so larger blocks are whole pages apart.

        Of latents that are not packed blocks are whole tokens apart, which is left out: 0.3 % at most (vLLM,
        v1/attention/backends/mla/flashmla_sparse.py, customize_spec).
        """
        page_tokens = math.gcd(_SPARSE_PAGE_TOKENS, tokens)
        packed = layer.sparse and self.split.kept_as(layer) is KVCacheDtype.FP8_DS_MLA
        return page_tokens * token_bytes if packed and page_tokens != tokens else 1

    @property
    def _block_outermost(self) -> bool:
        """Whether a block's layers lie beside each other, as kvtier's connector asks of vLLM on a GPU.

        vLLM's own asks for the layers one after another (offloading_connector.py,
        get_required_kvcache_layout), and so do the attention kernels of a CPU and of packed dtypes.
        """
        asked = traits_of(self.spec.backend).blocks_outermost and self.spec.engine.device is Device.GPU
        return asked and not packs_keys_and_values(self.split.dtype)


def _prefix_blocks(group: KVGroup) -> int:
    """Blocks that a cached prefix keeps beside those of its tokens."""
    if group.kind is LayerKind.STATE:
        return group.groups
    if group.kind is LayerKind.SLIDING:
        return group.groups * ceil_div(group.window_tokens - 1, group.block_tokens)
    return 0
