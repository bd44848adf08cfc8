"""The indexers of sparse attention: which layers have one, and what it keeps of each token."""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.planning.model_shape.config.fields import ConfigFields

# Bytes of an indexer key of DeepSeek's: head_dim one-byte elements and a 4-byte scale for each 128 of them
# (vLLM, models/deepseek_v2.py, Indexer: head_dim + head_dim // quant_block_size * 4).
_SCALE_BLOCK: Final = 128
_SCALE_BYTES: Final = 4
# MiniMax-M3 keeps its index keys in bfloat16 (vLLM, models/minimax_m3/common/indexer.py).
_BFLOAT16_BYTES: Final = 2
_SHARED: Final = "S"
# Spellings of a sparse layer of HY V4, whose other layers are dense (vLLM, models/hy_v4/nvidia/attention.py).
_SPARSE_LAYERS: Final = {"sparse_attention", "sparse", "indexed_attention", "deepseek_sparse_attention"}


@dataclass(frozen=True, slots=True)
class Indexer:
    """What a layer has of sparse attention.

    Attributes:
        index_bytes: Bytes that its own indexer keeps of a token; 0 without one.
        sparse: Whether its latents are read by an indexer's choice, here or in an earlier layer.
    """

    index_bytes: int = 0
    sparse: bool = False


NO_INDEXER: Final = Indexer()


def layer_indexers(config: ConfigFields, layers: int) -> tuple[Indexer, ...]:
    """The indexer of each attention layer.

    Args:
        config: The model's.
        layers: Attention layers that keep anything.

    Raises:
        InvalidInputError: A field is not what it must be.
    """
    sparse = config.part("sparse_attention_config")
    if frequencies := sparse.numbers("sparse_attention_freq"):  # MiniMax-M3
        each = Indexer(sparse.int("sparse_index_dim") * _BFLOAT16_BYTES)
        given = (*frequencies, *(0,) * layers)[:layers]
        return tuple(each if frequency else NO_INDEXER for frequency in given)
    if not config.has("index_topk", "index_head_dim"):
        return (NO_INDEXER,) * layers
    head_dim = config.optional_int("index_head_dim") or _SCALE_BLOCK
    own = Indexer(head_dim + head_dim // _SCALE_BLOCK * _SCALE_BYTES, sparse=True)
    shared = Indexer(sparse=True)
    if config.text("model_type") == "hy_v4":
        return _of_hy_v4(config, layers, own, shared)
    return tuple(own if _has_indexer(config, layer) else shared for layer in range(layers))


def _of_hy_v4(config: ConfigFields, layers: int, own: Indexer, shared: Indexer) -> tuple[Indexer, ...]:
    """Sparse are the layers that `layer_types` calls so; `indexer_types` says which have an own indexer."""
    names = (*config.strings("layer_types"), *("",) * layers)
    types = config.strings("indexer_types") or tuple(
        "full" if layer == 0 or (layer - 1) % 4 == 0 else "shared" for layer in range(layers)
    )
    return tuple(
        (own if kind == "full" else shared) if name in _SPARSE_LAYERS else NO_INDEXER
        for name, kind in zip(names, types, strict=False)
    )


def _has_indexer(config: ConfigFields, layer: int) -> bool:
    """vLLM, models/deepseek_v2.py, DeepseekV2MLAAttention: layers between share what an earlier one chose."""
    if pattern := config.word("index_topk_pattern"):
        return layer >= len(pattern) or pattern[layer] != _SHARED
    frequency = config.period("index_topk_freq") or 1
    offset = config.optional_int("index_skip_topk_offset")
    return max(layer - (2 if offset is None else offset) + 1, 0) % frequency == 0
