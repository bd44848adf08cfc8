"""A model's layers in groups of the same shape, from its config.json."""

from collections import Counter
from dataclasses import replace
from typing import Final

from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.layers.layer_kinds import (
    interleaved_window,
    is_chunked,
    layer_kinds,
)
from kvtier_operator.planning.model_shape.layers.layer_parts import (
    NO_INDEXER,
    Indexer,
    keeps_latent,
    layer_indexers,
)
from kvtier_operator.planning.model_shape.layers.recurrent_state import recurrent_state
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind

# A window of vLLM counts the token itself, Cohere's does not (models/commandr.py, cohere2_moe.py).
_WINDOW_WITHOUT_ITSELF: Final = ("cohere2",)
_GEMMA4_GLOBAL_HEAD_DIM: Final = 512  # transformers, configuration_gemma4.py, of full-attention layers
# What a head's size is the sum of in transformers' classes (configuration_youtu.py, ..._mistral4.py).
_SUMMED_HEAD_DIM: Final = {
    "youtu": ("qk_rope_head_dim",),
    "mistral4": ("qk_nope_head_dim", "qk_rope_head_dim"),
}
_ZAMBA2: Final = "zamba2"  # its attention is twice as wide as the model
# Their classes hand attention no cache_config, whose dtype it would take (vLLM, models/falcon.py, clip.py).
_OWN_DTYPE: Final = {"falcon", "RefinedWeb", "RefinedWebModel", "clip_text_model"}
# Caches keys and values as its latent expands to (vLLM, models/minicpm3.py).
_EXPANDED_LATENT: Final = {"minicpm3"}


def layer_groups(config: ConfigFields) -> tuple[LayerGroup, ...]:
    """Layers that keep anything of the past, those of the same shape together, in order of appearance."""
    blocks = config.parts("block_configs")
    if blocks and not any(block.has("block_type") for block in blocks):  # Nemotron-H names each block's type
        return _of_blocks(config, blocks)
    kinds = layer_kinds(config)
    if config.text("model_type") in _EXPANDED_LATENT:
        return (_of_expanded_latent(config, len(kinds)),)
    attention = sum(kind is not LayerKind.STATE for kind in kinds)
    indexers = iter(layer_indexers(config, attention))
    alike = Counter((kind, NO_INDEXER if kind is LayerKind.STATE else next(indexers)) for kind in kinds)
    counts: Counter[LayerGroup] = Counter()
    for (kind, indexer), layers in alike.items():
        counts[_group(config, kind, indexer)] += layers
    return tuple(replace(group, layers=layers) for group, layers in counts.items())


def _group(config: ConfigFields, kind: LayerKind, indexer: Indexer) -> LayerGroup:
    """One layer of this kind."""
    if kind is LayerKind.STATE:
        return LayerGroup(kind, 0, 0, 0, 0, state=recurrent_state(config))
    if keeps_latent(config):  # such a layer looks at no window (vLLM, layers/attention/mla_attention.py)
        return LayerGroup(
            LayerKind.MLA,
            0,
            kv_heads=1,
            key_dim=config.int("kv_lora_rank") + (config.optional_int("qk_rope_head_dim") or 0),
            value_dim=0,
            index_bytes=indexer.index_bytes,
            sparse=indexer.sparse,
        )
    heads, key_dim, value_dim = _heads(config, kind)
    return LayerGroup(
        kind,
        0,
        kv_heads=heads,
        key_dim=key_dim,
        value_dim=value_dim,
        window_tokens=_window(config) if kind is LayerKind.SLIDING else 0,
        index_bytes=indexer.index_bytes,
        own_dtype=config.text("model_type") in _OWN_DTYPE,
    )


def _window(config: ConfigFields) -> int:
    if is_chunked(config):
        return config.int("attention_chunk_size")
    if window := interleaved_window(config):
        return window
    window = config.optional_int("loop_window_size") or config.int("sliding_window", "sliding_window_size")
    return window + 1 if config.text("model_type").startswith(_WINDOW_WITHOUT_ITSELF) else window


def _heads(config: ConfigFields, kind: LayerKind) -> tuple[int, int, int]:
    """Key/value heads of a layer, and the sizes of a key and of a value."""
    heads, head_dim = kv_heads(config), one_head_dim(config)
    gemma4 = config.text("model_type").startswith("gemma4")
    if kind is LayerKind.FULL and (gemma4 or config.has("global_head_dim")):
        return _full_heads(config, heads, gemma4=gemma4)
    if config.has("hybrid_layer_pattern"):  # MiMo V2
        if kind is LayerKind.SLIDING:
            key_dim = config.int("swa_head_dim")
            value_dim = config.optional_int("swa_v_head_dim") or key_dim
            return config.int("swa_num_key_value_heads"), key_dim, value_dim
        return heads, head_dim, config.optional_int("v_head_dim") or head_dim
    if config.has("param_sink_number") and config.has("v_channels"):  # openPangu with sinks
        return heads, head_dim, config.int("v_channels")
    other = config.part("attention_other_setting")  # Step 3.5
    if kind is LayerKind.SLIDING and other.text("attention_type") == "sliding_attention":
        head_dim = other.int("head_dim")
        return other.int("num_attention_groups"), head_dim, head_dim
    return heads, head_dim, head_dim


_PER_LAYER: Final = "per_layer_config"


def _full_heads(config: ConfigFields, heads: int, *, gemma4: bool) -> tuple[int, int, int]:
    """The same of full-attention layers that are unlike the others."""
    entries = config.part(_PER_LAYER)  # by number: what transformers saves for the sizes below
    if entries.names:
        own = entries.part(entries.names[0])
        if any(entries.get(number) != entries.get(entries.names[0]) for number in entries.names):
            raise config.error(
                _PER_LAYER, "gives layers several sizes, which kvtier cannot size; set spec.model.geometry"
            )
        heads = own.optional_int("num_key_value_heads") or heads
        head_dim = own.optional_int("head_dim") or one_head_dim(config)
        return heads, head_dim, head_dim
    if not gemma4 or config.get("attention_k_eq_v") is True:
        heads = config.optional_int("num_global_key_value_heads") or heads
    head_dim = config.optional_int("global_head_dim") or _GEMMA4_GLOBAL_HEAD_DIM
    return heads, head_dim, head_dim


def _of_expanded_latent(config: ConfigFields, layers: int) -> LayerGroup:
    head_dim = config.int("qk_nope_head_dim") + config.int("qk_rope_head_dim")
    heads = config.int("num_attention_heads")
    return LayerGroup(LayerKind.FULL, layers, kv_heads=heads, key_dim=head_dim, value_dim=head_dim)


def _of_blocks(config: ConfigFields, blocks: tuple[ConfigFields, ...]) -> tuple[LayerGroup, ...]:
    """Nemotron's searched architectures: layers without attention, and groups of heads of other sizes."""
    counts: Counter[LayerGroup] = Counter()
    for block in blocks:
        attention = block.part("attention")
        if attention.get("no_op") is True or attention.get("replace_with_linear") is True:
            continue
        heads = config.int("num_attention_heads") // attention.int("n_heads_in_group")
        head_dim = one_head_dim(config)
        counts[LayerGroup(LayerKind.FULL, 0, kv_heads=heads, key_dim=head_dim, value_dim=head_dim)] += 1
    return tuple(replace(group, layers=layers) for group, layers in counts.items())


def kv_heads(config: ConfigFields) -> int:
    """Key/value heads of a layer, where its layers do not differ."""
    if config.get("multi_query") is True and not config.get("new_decoder_architecture"):  # Falcon
        return 1
    nested = config.part("attn_config")  # DBRX, MPT
    return (
        nested.optional_int("kv_n_heads")
        or config.optional_int(
            "n_head_kv",
            "num_kv_heads",
            "num_key_value_heads",
            "multi_query_group_num",
            "num_attention_groups",
        )
        or config.int("num_attention_heads", "n_head", "n_heads")
    )


def one_head_dim(config: ConfigFields) -> int:
    """Size of a head, where its layers do not differ."""
    if summed := sum(config.int(name) for name in _SUMMED_HEAD_DIM.get(config.text("model_type"), ())):
        return summed
    explicit = config.optional_int("head_dim", "hidden_size_per_head", "attention_head_dim", "kv_channels")
    if explicit:
        return explicit
    heads = config.int("num_attention_heads", "n_head", "n_heads")
    # BLOOM's first name goes before the others
    width = config.optional_int("n_embed") or config.int("hidden_size", "n_embd", "d_model")
    width *= 2 if config.text("model_type") == _ZAMBA2 else 1
    if heads > width:
        raise config.error("num_attention_heads", f"{heads:,} heads in a width of {width:,} have no elements")
    return width // heads
