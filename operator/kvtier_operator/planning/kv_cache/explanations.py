"""Explains in words how the bytes of a token came about, and what a hybrid model keeps beside them."""

from collections.abc import Mapping, Sequence
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.arguments.speculation import DROPS_LAST_BLOCK, speculation
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.kv_cache.split import Split
from kvtier_operator.planning.model_shape.block_tokens import Architecture
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind, ModelShape
from kvtier_operator.planning.units import count, size

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
    denied = any(each.name == _ALLOW_CHUNKS and each.value == "0" for each in spec.engine.env)
    return shape.chunked_attention and (denied or (asked is not None and asked.method in DROPS_LAST_BLOCK))


def why_full(shape: ModelShape, spec: Spec) -> str:
    """Why layers with a window keep every token."""
    if not any(group.kind in {LayerKind.FULL, LayerKind.MLA} for group in shape.groups):
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
    """What only a running engine knows, one line; nothing where all GPUs agree.

    Args:
        values: On each GPU; two where vLLM's minors differ.
        what: The GPU decides.
        planned: What the plan takes.
        then: What to do about it.
    """
    gpus: dict[tuple[int, ...], list[str]] = {}
    for gpu, found in values.items():
        gpus.setdefault(tuple(dict.fromkeys(found)), []).append(gpu)
    if len(gpus) < 2:  # noqa: PLR2004 - one alone
        return ()
    each = ", ".join(
        f"{' (vLLM 0.33: '.join(count(value) for value in found)}{')' * (len(found) - 1)} on "
        f"{' and '.join(gpus[found])}"
        for found in sorted(gpus)
    )
    line = (
        f"the GPU decides {what}, which a plan cannot know: {each}; planned with {planned}, and the picker "
        f"follows what a running engine says{then}"
    )
    return (line,)
