"""From a model's shape to bytes: what one token costs on a rank and in a tier.

How vLLM 0.32 counts, which this file follows:
- A page of one layer is heads x tokens x (key + value) x element size, heads of a rank being
  max(1, heads // tensor_parallel_size) (v1/kv_cache_interface.py, AttentionSpec; config/model.py,
  get_num_kv_heads). An MLA page is one latent, on every rank in full (MLAAttentionSpec, num_kv_heads=1).
- A block of a tier is the pages of one KV cache group, all ranks (v1/kv_offload/cpu/spec.py:
  worker_kv_bytes_per_block x world_size; the ranks' equal MLA pages are stored once: replicated_layout).
- In a hybrid model all groups have the same number of layer slots, and a group of sliding-window or
  state layers stores only the blocks that a hit at the prompt's end needs
  (v1/core/kv_cache_utils.py, _get_kv_cache_groups_uniform_page_size; config/cache.py,
  prefix_cache_retention_interval 0; v1/core/single_type_kv_cache_manager.py, reachable_block_mask). So a
  token costs the full-attention groups, and each cached prefix its windows and states once.
- A connector that cannot do that makes vLLM keep every token in every layer (config/vllm.py,
  disable_hybrid_kv_cache_manager), and so does chunked attention: LMCache in the engine, Llama 4.
"""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.engine import EngineSpec, KVCacheDtype
from kvtier_operator.api.resource import Backend, Spec
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.block_tokens import engine_block_tokens
from kvtier_operator.planning.geometry import Geometry, LayerGroup, LayerKind, ModelShape
from kvtier_operator.planning.units import ceil_div, count, size

_DTYPE_BYTES: Final = {
    KVCacheDtype.BFLOAT16: 2,
    KVCacheDtype.FP8: 1,
    KVCacheDtype.FP8_E4M3: 1,
    KVCacheDtype.FP8_E5M2: 1,
}
# One token of sparse MLA in fp8: 512 one-byte latent elements with 16 bytes of scales and a 128-byte bf16
# rotary key (vLLM, layers/attention/mla_attention.py, fp8_ds_mla; backends/mla/flashmla_sparse.py).
_SPARSE_MLA_FP8_BYTES: Final = 656
# vLLM, v1/core/kv_cache_utils.py: below this ratio of layer counts the larger one sets the group's size.
_GROUP_PADDING_RATIO: Final = 1.5
_MLA_STATE_BLOCK_ALIGNMENT: Final = 128  # vLLM, platforms/interface.py, _align_hybrid_block_size


@dataclass(frozen=True, slots=True)
class _Split:
    """How one engine divides the model: ranks, bytes of an element, whether the latent is stored once."""

    ranks: int
    element_bytes: int
    latent_once: bool

    def heads_per_rank(self, group: LayerGroup) -> int:
        return 1 if group.kind is LayerKind.MLA else max(1, ceil_div(group.kv_heads, self.ranks))

    def rank_bytes(self, group: LayerGroup) -> int:
        """Bytes of one token in one layer on one rank."""
        if group.index_bytes and self.element_bytes == 1:
            return _SPARSE_MLA_FP8_BYTES + group.index_bytes
        elements = self.heads_per_rank(group) * (group.key_dim + group.value_dim)
        return elements * self.element_bytes + group.index_bytes

    def tier_bytes(self, group: LayerGroup) -> int:
        """Bytes of one token in one layer in a tier, all ranks."""
        copies = 1 if group.kind is LayerKind.MLA and self.latent_once else self.ranks
        return self.rank_bytes(group) * copies


def kv_geometry(shape: ModelShape, spec: Spec) -> Geometry:
    """What one token of this model costs in this engine and, through its backend, in a tier."""
    engine = spec.engine
    split = _Split(
        ranks=engine.tensor_parallel_size,
        element_bytes=_element_bytes(shape, engine),
        # vLLM, offloading/config.py: one copy only if every layer's pages are equal on all ranks.
        latent_once=all(group.kind is LayerKind.MLA for group in shape.groups),
    )
    kept = tuple(group for group in shape.groups if group.kind is not LayerKind.STATE)
    if not kept and shape.bytes_per_token is None:
        raise InvalidInputError(
            shape.source,
            Problem(
                "spec.model.name",
                "no layer of this model keeps keys and values: there is no prefix cache to keep in a tier",
            ),
        )
    whole, partial = _divide(shape, spec)
    slot_layers = _slot_layers(whole, partial)
    block_tokens = _block_tokens(engine, whole, partial, split)
    notes = list(shape.notes)
    if shape.bytes_per_token is not None:
        per_token, per_rank = shape.bytes_per_token, ceil_div(shape.bytes_per_token, split.ranks)
        how = f"{count(per_token)} B as spec.model.geometry.kvBytesPerToken gives it"
    else:
        per_token = sum(_slots(group, slot_layers) * split.tier_bytes(group) for group in whole)
        per_rank = sum(_slots(group, slot_layers) * split.rank_bytes(group) for group in whole)
        how = " + ".join(_describe(group, _slots(group, slot_layers), split) for group in whole)
    per_prefix = _bytes_per_prefix(whole, partial, slot_layers, block_tokens, split)
    if partial:
        every = sum(group.layers * split.tier_bytes(group) for group in kept)
        layers = " and ".join(_name(group) for group in partial)
        notes.append(
            f"{layers} keep no tokens in a tier: a cached prefix takes {size(per_prefix)} beside its tokens "
            f"({count(every)} B a token if every attention layer kept all of them)"
        )
        notes.append(
            "a hybrid model's prefix is reused up to where an earlier prompt ended or two prompts parted, "
            "not at every block"
        )
    elif _keeps_windows_in_full(shape):
        notes.append(_why_full(shape, spec))
    return Geometry(
        source=shape.source,
        groups=shape.groups,
        cache_dtype_bytes=split.element_bytes,
        tensor_parallel_size=split.ranks,
        kv_bytes_per_token=per_token,
        kv_bytes_per_token_per_rank=per_rank,
        mla=any(group.kind is LayerKind.MLA for group in shape.groups),
        weights_bytes=spec.model.weights.bytes if spec.model.weights else shape.weights_bytes,
        max_position_tokens=shape.max_position_tokens,
        how=how,
        notes=tuple(notes),
        attention_heads=shape.attention_heads,
        bytes_per_prefix=per_prefix,
        block_tokens=block_tokens,
        hybrid=len({group.kind for group in shape.groups}) > 1,
    )


def _element_bytes(shape: ModelShape, engine: EngineSpec) -> int:
    if engine.kv_cache_dtype is not KVCacheDtype.AUTO:
        return _DTYPE_BYTES[engine.kv_cache_dtype]
    return 4 if argument(engine.extra_args, "--dtype") in {"float32", "float"} else shape.dtype_bytes


def argument(extra_args: list[str], name: str) -> str | None:
    """Value of `--name value` or `--name=value` among the engine's own arguments; the last one counts."""
    value = None
    for position, word in enumerate(extra_args):
        if word == name and position + 1 < len(extra_args):
            value = extra_args[position + 1]
        elif word.startswith(f"{name}="):
            value = word.partition("=")[2]
    return value


def _divide(shape: ModelShape, spec: Spec) -> tuple[tuple[LayerGroup, ...], tuple[LayerGroup, ...]]:
    """Groups that keep every token in a tier, and groups that keep a window or a state for each prefix."""
    kept = tuple(group for group in shape.groups if group.kind is not LayerKind.STATE)
    full = tuple(group for group in kept if group.kind is not LayerKind.SLIDING)
    hybrid_manager = (
        spec.backend is not Backend.LMCACHE
        and not shape.chunked_attention
        and "--disable-hybrid-kv-cache-manager" not in spec.engine.extra_args
    )
    if not full or not hybrid_manager:
        return kept, tuple(group for group in shape.groups if group.kind is LayerKind.STATE)
    return full, tuple(group for group in shape.groups if group not in full)


def _slot_layers(whole: tuple[LayerGroup, ...], partial: tuple[LayerGroup, ...]) -> int:
    """Layer slots of one KV cache group; 1 where all layers are one group and nothing is padded."""
    if not partial or not whole:
        return 1
    counts = [sum(group.layers for group in whole), *(group.layers for group in partial)]
    return max(counts) if max(counts) < min(counts) * _GROUP_PADDING_RATIO else min(counts)


def _slots(group: LayerGroup, slot_layers: int) -> int:
    return ceil_div(group.layers, slot_layers) * slot_layers


def _block_tokens(
    engine: EngineSpec, whole: tuple[LayerGroup, ...], partial: tuple[LayerGroup, ...], split: _Split
) -> int:
    """vLLM, platforms/interface.py, _align_hybrid_block_size: a page must hold a whole state."""
    tokens = engine_block_tokens(engine)
    state_bytes = max((group.state_bytes for group in partial), default=0)
    page_bytes = max((split.rank_bytes(group) for group in whole), default=0)
    if not state_bytes or not page_bytes:
        return tokens
    mla = any(group.kind is LayerKind.MLA for group in whole)
    alignment = max(tokens, _MLA_STATE_BLOCK_ALIGNMENT if mla else 1)
    return alignment * max(1, ceil_div(ceil_div(state_bytes, split.ranks), alignment * page_bytes))


def _bytes_per_prefix(
    whole: tuple[LayerGroup, ...],
    partial: tuple[LayerGroup, ...],
    slot_layers: int,
    block_tokens: int,
    split: _Split,
) -> int:
    """Blocks that the windowed and state groups keep for one prefix; a state takes a whole page."""
    page_bytes = max((split.tier_bytes(group) for group in whole), default=0) * block_tokens
    total = 0
    for group in partial:
        if group.kind is LayerKind.STATE:
            total += _slots(group, slot_layers) * max(page_bytes, group.state_bytes)
        else:
            blocks = ceil_div(group.window_tokens - 1, block_tokens)
            total += _slots(group, slot_layers) * blocks * block_tokens * split.tier_bytes(group)
    return total


def _describe(group: LayerGroup, layers: int, split: _Split) -> str:
    padded = f" (of {group.layers}, padded to the other groups' size)" if layers != group.layers else ""
    if split.element_bytes == 1 and group.index_bytes:
        return f"{layers} layers{padded} x ({_SPARSE_MLA_FP8_BYTES} + {group.index_bytes}) B"
    if group.kind is LayerKind.MLA:
        index = f" + {layers} x {group.index_bytes} B of indexer" if group.index_bytes else ""
        copies = "" if split.latent_once or split.ranks == 1 else f" x {split.ranks} ranks"
        return f"{layers} layers{padded} x {group.key_dim} x {split.element_bytes} B{index}{copies}"
    heads = split.heads_per_rank(group) * split.ranks
    replicas = f" ({group.kv_heads} replicated over {split.ranks} ranks)" if heads != group.kv_heads else ""
    same = group.key_dim == group.value_dim
    dims = f"{group.key_dim}" if same else f"({group.key_dim} + {group.value_dim})"
    factor = "2 x " if same else ""
    return f"{factor}{layers} layers{padded} x {heads} heads{replicas} x {dims} x {split.element_bytes} B"


def _name(group: LayerGroup) -> str:
    if group.kind is LayerKind.STATE:
        return f"{group.layers} linear-attention layers ({size(group.state_bytes)} of state each)"
    return f"{group.layers} sliding-window layers (window {count(group.window_tokens)})"


def _keeps_windows_in_full(shape: ModelShape) -> bool:
    return shape.chunked_attention or any(group.kind is LayerKind.SLIDING for group in shape.groups)


def _why_full(shape: ModelShape, spec: Spec) -> str:
    if shape.chunked_attention:
        return (
            "vLLM turns its hybrid cache manager off for chunked attention, so those layers keep every token"
        )
    if not any(group.kind in {LayerKind.FULL, LayerKind.MLA} for group in shape.groups):
        window = max(group.window_tokens for group in shape.groups)
        return f"every layer has a window: of a longer prompt only the last {count(window)} tokens are kept"
    reason = (
        "LMCache in the engine turns vLLM's hybrid cache manager off"
        if spec.backend is Backend.LMCACHE
        else "spec.engine.extraArgs turns vLLM's hybrid cache manager off"
    )
    return f"{reason}, so sliding-window layers keep every token"
