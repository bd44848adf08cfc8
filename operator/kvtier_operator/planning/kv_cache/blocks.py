"""Blocks of the device's KV cache: groups of layers that share them, and blocks that keep a state."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.model_shape.shape import LayerKind
from kvtier_operator.planning.units import ceil_div, round_up

# Smallest block of a kernel that computes such models' attention (vLLM, v1/attention/backends: flash_attn.py,
# flashinfer.py, triton_attn.py; cpu_attn.py).
_KERNEL_TOKENS: Final = {Device.GPU: 16, Device.CPU: 32}
_LATENT_ALIGNMENT_TOKENS: Final = 128


@dataclass(frozen=True, slots=True)
class StatePage:
    """What a block must hold, of one layer on one rank."""

    state_bytes: int  # of a state
    token_bytes: int  # of one token of an attention layer
    latent: bool  # whether the attention layers keep a latent
    multiple_of: int = 1  # tokens that blocks are a multiple of beside that


def state_block_tokens(tokens: int, device: Device, page: StatePage) -> int:
    """Tokens of a block once vLLM has raised them (platforms/interface.py, _align_hybrid_block_size)."""
    kernel_tokens = _KERNEL_TOKENS[device]
    alignment = max(kernel_tokens, tokens, _LATENT_ALIGNMENT_TOKENS if page.latent else 1)
    alignment = math.lcm(alignment, page.multiple_of)
    raised = alignment * ceil_div(page.state_bytes, alignment * page.token_bytes)
    return max(tokens, round_up(raised, kernel_tokens))


def boundary_block_tokens(tokens: int, device: Device, own_bytes: int) -> int:
    """Tokens of a block where some layers keep the model's own dtype beside a packed one.

    vLLM raises it until a packed page covers one of the others, and takes a byte for each packed element: it
    asks the first layer's backend, which packs nothing (platforms/interface.py,
    _align_heterogeneous_kv_block_size).
    """
    kernel_tokens = _KERNEL_TOKENS[device]
    alignment = max(kernel_tokens, tokens)
    return max(tokens, alignment * ceil_div(own_bytes * kernel_tokens, alignment))


# All groups take blocks of one pool, so every block has the bytes of the widest group, on the device and in
# a tier (vLLM, v1/core/kv_cache_utils.py, get_kv_cache_groups; distributed/kv_transfer/kv_connector/v1/
# offloading/config.py, worker_kv_bytes_per_block). The functions bear vLLM's names; both minors agree.
# Below this ratio of layer counts the larger one sets the group's size.
_GROUP_PADDING_RATIO: Final = 1.5


@dataclass(frozen=True, slots=True)
class LayerPages:
    """Layers whose pages are alike, on one rank."""

    kind: LayerKind  # how they keep their past
    layers: int  # how many
    block_tokens: int  # tokens of one block
    page_bytes: int  # bytes of one block in one layer
    window_tokens: int = 0  # window of sliding layers; 0 otherwise
    alignment_bytes: int = 1  # what blocks are a multiple of bytes apart, where all layers lie in one block

    def joins(self, other: "LayerPages") -> bool:
        """Whether the two can be one group without being alike (UniformTypeKVCacheSpecs.is_uniform_type)."""
        if self.block_tokens != other.block_tokens:
            return False
        if self.kind.keeps_tokens or other.kind.keeps_tokens:
            return self.kind.keeps_tokens and other.kind.keeps_tokens
        if self.kind is LayerKind.STATE:
            return other.kind is self.kind and other.page_bytes == self.page_bytes
        return other.kind is self.kind and other.window_tokens == self.window_tokens


@dataclass(frozen=True, slots=True)
class KVGroup:
    """One or more groups that are alike."""

    kind: LayerKind  # how their layers keep their past
    groups: int  # how many
    block_tokens: int  # tokens of one block
    window_tokens: int = 0  # window of sliding layers; 0 otherwise


@dataclass(frozen=True, slots=True)
class KVGroups:
    """All groups of a model."""

    block_bytes: int  # bytes of one block of any group, on one rank
    groups: tuple[KVGroup, ...]  # those that keep every token first
    slots: int = 0  # layers that each group is padded to; 0 where none is


def get_kv_cache_groups(layers: Sequence[LayerPages], *, block_outermost: bool) -> KVGroups | None:
    """The groups of a model's layers.

    Args:
        layers: All that keep anything, at least one.
        block_outermost: Whether the cache's layout has blocks outermost (BLHNC), so that layers with pages of
            unlike size can lie in one block.

    Returns:
        None where vLLM finds no common size of a page, and refuses to start.
    """
    groups = _groups(layers, block_outermost=block_outermost)
    if groups is None or not block_outermost:
        return groups
    alignment_bytes = math.lcm(*(layer.alignment_bytes for layer in layers))
    return replace(groups, block_bytes=round_up(groups.block_bytes, alignment_bytes))


def _groups(layers: Sequence[LayerPages], *, block_outermost: bool) -> KVGroups | None:
    if all(layers[0].joins(other) for other in layers[1:]):
        return _one_group(layers)
    if block_outermost and len({layer.page_bytes for layer in layers}) > 1:
        return _pack(layers)
    unified = _unify_page_size(layers)
    if unified is not None:
        return _uniform_page_size(unified)
    # A latent's pages cannot be padded: windows beside it are kept in full then.
    promoted = [_as_full(layer) for layer in layers]
    return _one_group(promoted) if all(promoted[0].joins(other) for other in promoted[1:]) else None


def _one_group(layers: Sequence[LayerPages]) -> KVGroups:
    first = layers[0]
    return KVGroups(
        sum(layer.layers * layer.page_bytes for layer in layers),
        (KVGroup(first.kind, 1, first.block_tokens, first.window_tokens),),
    )


def _as_full(layer: LayerPages) -> LayerPages:
    return replace(layer, kind=LayerKind.FULL) if layer.kind is LayerKind.SLIDING else layer


def _pack(layers: Sequence[LayerPages]) -> KVGroups | None:
    """vLLM: _get_packed_kv_cache_groups."""
    buckets: list[list[LayerPages]] = []
    for layer in layers:
        bucket = next((one for one in buckets if one[0].joins(layer)), None)
        if bucket is None:
            buckets.append([layer])
        else:
            bucket.append(layer)
    repeats = _repeats(buckets)
    pages = [_page_layers(bucket) for bucket in buckets]
    splits = [_splits(page, repeats) for page in pages]
    states = [_is_state(bucket, repeats) for bucket in buckets]
    anchor_bytes = max(
        _widest(page, sum(page.values()) if state else split)
        for page, split, state in zip(pages, splits, states, strict=True)
    )
    groups, block_bytes = [], 0
    for bucket, page, split, state in zip(buckets, pages, splits, states, strict=True):
        count = split
        if state:
            states_per_block = max(anchor_bytes // bucket[0].page_bytes, 1)
            count = max(split, ceil_div(sum(page.values()), states_per_block))
        if count > 1 and len(set(page.values())) > 1:
            return None  # vLLM splits by whole repeats of a pattern, and loses the layers that are left
        block_bytes = max(block_bytes, _widest(page, count))
        groups.append(KVGroup(bucket[0].kind, count, bucket[0].block_tokens, bucket[0].window_tokens))
    return KVGroups(block_bytes, _tokens_first(groups))


def _page_layers(bucket: Iterable[LayerPages]) -> dict[int, int]:
    """Layers by the size of their pages."""
    layers_by_page_bytes: dict[int, int] = {}
    for layer in bucket:
        layers_by_page_bytes[layer.page_bytes] = layers_by_page_bytes.get(layer.page_bytes, 0) + layer.layers
    return layers_by_page_bytes


def _repeats(buckets: Iterable[Iterable[LayerPages]]) -> int | None:
    """Repeats of the layer pattern in each group; None where no bucket mixes sizes evenly."""
    balanced = [page for page in map(_page_layers, buckets) if len(set(page.values())) == 1]
    least = max((max(page.values()) for page in balanced if len(page) > 1), default=0)
    return _approximate_gcd([max(page.values()) for page in balanced], least) if least else None


def _approximate_gcd(values: Sequence[int], least: int) -> int:
    """The divisor from `least` on that pads these the least; the larger one of two."""
    return min(
        range(least, max(values) + 1),
        key=lambda divisor: (sum(-value % divisor for value in values), -divisor),
        default=least,
    )


def _splits(page: dict[int, int], repeats: int | None) -> int:
    balanced = len(set(page.values())) == 1
    return ceil_div(max(page.values()), repeats) if balanced and repeats is not None else 1


def _is_state(bucket: Sequence[LayerPages], repeats: int | None) -> bool:
    kind = bucket[0].kind
    return kind is LayerKind.STATE or (kind is LayerKind.SLIDING and repeats is None)


def _widest(page: dict[int, int], groups: int) -> int:
    """Bytes of a block of the largest of so many groups."""
    return sum(ceil_div(layers, groups) * page_bytes for page_bytes, layers in page.items())


def _unify_page_size(layers: Sequence[LayerPages]) -> list[LayerPages] | None:
    """vLLM: unify_kv_cache_spec_page_size. Small pages get more tokens, or padding where none fit."""
    largest = max(layer.page_bytes for layer in layers)
    unified = []
    for layer in layers:
        times, rest = divmod(largest, layer.page_bytes)
        if layer.kind is LayerKind.STATE or (rest and layer.kind is not LayerKind.MLA):
            unified.append(replace(layer, page_bytes=largest))
        elif not rest:
            unified.append(replace(layer, page_bytes=largest, block_tokens=layer.block_tokens * times))
        else:
            return None
    return unified


def _uniform_page_size(layers: Sequence[LayerPages]) -> KVGroups:
    """vLLM: _get_kv_cache_groups_uniform_page_size."""
    least, most = min(layer.layers for layer in layers), max(layer.layers for layer in layers)
    slots = most if most < least * _GROUP_PADDING_RATIO else least
    groups = [
        KVGroup(layer.kind, ceil_div(layer.layers, slots), layer.block_tokens, layer.window_tokens)
        for layer in layers
    ]
    return KVGroups(slots * layers[0].page_bytes, _tokens_first(groups), slots)


def _tokens_first(groups: Iterable[KVGroup]) -> tuple[KVGroup, ...]:
    return tuple(sorted(groups, key=lambda group: not group.kind.keeps_tokens))
