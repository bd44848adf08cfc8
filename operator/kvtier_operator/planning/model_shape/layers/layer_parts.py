"""Of which parts a model's layers are made: attention or a state, and an MLP or experts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.planning.model_shape.config.engine_data.architectures import (
    architectures_of,
    without_own_class,
)
from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.layers.layer_kinds import layer_kinds
from kvtier_operator.planning.model_shape.shape import LayerKind

_LETTERS: Final = {"*": "attention", "M": "mamba", "-": "mlp", "E": "moe"}
"""Of Nemotron's `hybrid_override_pattern`."""
_ALONE: Final = {"mlp", "moe"}


@dataclass(frozen=True, slots=True)
class LayerParts:
    """How many layers have each part."""

    layers: int  # all
    attention: int  # with attention
    states: int  # with a state
    dense: int  # with an MLP
    sparse: int  # with experts
    experts: int  # of each of these; 0 without any


def layer_parts(config: ConfigFields) -> LayerParts | None:
    """From a config.json whose layers can be sized; None where layers differ in more than these parts."""
    if config.has("block_configs"):
        return None
    experts = (
        config.int_in_file("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts") or 0
    )
    names = config.strings("layers_block_type") or tuple(
        _LETTERS.get(letter, letter) for letter in config.text("hybrid_override_pattern")
    )
    if _ALONE & set(names):  # Nemotron: each block is one part
        return LayerParts(
            layers=len(names),
            attention=names.count("attention"),
            states=names.count("mamba"),
            dense=names.count("mlp"),
            sparse=names.count("moe"),
            experts=experts,
        )
    layers = config.optional_int("num_hidden_layers", "n_layer", "n_layers")
    if not layers:
        return None
    kinds = layer_kinds(config)
    states = kinds.count(LayerKind.STATE)
    sparse = _sparse(config, layers) if experts else 0
    # of Gemma 3n the last layers keep nothing, of Falcon-H1 each has both
    attention = max(layers - states, len(kinds) - states)
    return LayerParts(layers, attention, states, layers - sparse, sparse, experts)


def _sparse(config: ConfigFields, layers: int) -> int:
    """Layers with experts: after the first ones all, or one of so many, but those that are named."""
    first = config.int_in_file("first_k_dense_replace") or 0
    step = config.int_in_file(
        *("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq", "expert_layer_period")
    )
    named = config.get("mlp_only_layers")
    return max((layers - first) // (step or 1) - (len(named) if isinstance(named, list) else 0), 0)


LATENT_TYPES: Final = frozenset(
    {
        *("axk1", "bailing_hybrid", "bailing_hybrid_mtp", "bailing_hybrid_v3_mtp", "deepseek_mtp"),
        *("deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "deepseek_v41", "dots3_note"),
        *("glm4_moe_lite", "glm4_moe_lite_mtp", "glm5_next", "glm5_next_text", "glm_moe_dsa"),
        *("hy_v4", "hy_v4_mtp", "k3_dspark", "kimi_k2", "kimi_linear", "longcat_flash"),
        *("pangu_ultra_moe", "pangu_ultra_moe_mtp"),
    }
)
"""vLLM's own list (transformers_utils/model_arch_config_convertor.py, is_deepseek_mla). In the file of any
other type whose class is vLLM's own the rank of a latent is one of its weights alone: MiniCPM3."""
_LATENT_CLASSES: Final = frozenset({"SarvamMLAForCausalLM"})
"""Keep a latent whatever the list says: their classes ask nobody (models/sarvam.py)."""


def keeps_latent(config: ConfigFields) -> bool:
    """Whether full-attention layers keep a latent; a file that names no type is taken by its fields.

    On the Transformers library's classes the rank alone says it (config/model.py, use_mla).
    """
    if not config.has("kv_lora_rank"):
        return False
    by_class = without_own_class(config) or _LATENT_CLASSES.intersection(architectures_of(config))
    return bool(by_class) or (config.text("model_type") or "deepseek_v3") in LATENT_TYPES


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
    """What a layer has of sparse attention."""

    index_bytes: int = 0  # bytes that its own indexer keeps of a token; 0 without one
    sparse: bool = False  # whether its latents are read by an indexer's choice, here or in an earlier layer


NO_INDEXER: Final = Indexer()


def layer_indexers(config: ConfigFields, layers: int) -> tuple[Indexer, ...]:
    """The indexer of each attention layer."""
    sparse = config.part("sparse_attention_config")
    if frequencies := sparse.numbers("sparse_attention_freq"):  # MiniMax-M3
        indexer = Indexer(sparse.int("sparse_index_dim") * _BFLOAT16_BYTES)
        by_layer = (*frequencies, *(0,) * layers)[:layers]
        return tuple(indexer if frequency else NO_INDEXER for frequency in by_layer)
    if not config.has("index_topk", "index_head_dim"):
        return (NO_INDEXER,) * layers
    head_dim = config.optional_int("index_head_dim") or _SCALE_BLOCK
    own = Indexer(head_dim + head_dim // _SCALE_BLOCK * _SCALE_BYTES, sparse=True)
    shared = Indexer(sparse=True)
    if config.text("model_type") == "hy_v4":
        return _of_hy_v4(config, layers, own, shared)
    # vLLM, models/deepseek_v2.py, DeepseekV2MLAAttention: layers between share what an earlier one chose
    if pattern := config.word("index_topk_pattern"):
        return tuple(shared if letter == _SHARED else own for letter in pattern.ljust(layers)[:layers])
    frequency, offset = config.period("index_topk_freq") or 1, config.optional_int("index_skip_topk_offset")
    after = (2 if offset is None else offset) - 1
    return tuple(own if max(layer - after, 0) % frequency == 0 else shared for layer in range(layers))


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


# Source: vLLM 0.32 and 0.33, model_executor/models/gpt_oss.py, granite.py, laguna.py, mimo_v2.py.
_WITH_SINKS: Final = frozenset({"gpt_oss"})
_TYPES_OF_WINDOWS: Final = frozenset({"granite", "granitemoe"})
"""Which have them where the file says a kind for each layer, unless it says `attention_sinks`."""
_FIELDS: Final = ("swa_attention_sink_enabled", "add_swa_attention_sink_bias")


def has_sinks(fields: ConfigFields) -> bool:
    """Tell it of a model."""
    model_type = fields.text("model_type")
    if model_type in _TYPES_OF_WINDOWS:
        flag = fields.get("attention_sinks")
        return fields.has("layer_types") if flag is None else bool(flag)
    return model_type in _WITH_SINKS or any(bool(fields.get(name)) for name in _FIELDS)


_IN_WHOLE_IMAGES: Final = frozenset({"bagel", "gemma3", "molmo2", "moondream3", "paligemma"})
_TYPES_THAT_SAY: Final = ("gemma4", "diffusion_gemma")


# Source: vllm/transformers_utils/model_arch_config_convertor.py (is_mm_prefix_lm), 0.32 and 0.33.
def images_both_ways(config: Mapping[str, Any], fields: ConfigFields) -> bool:
    """Tell it of a model."""
    if (flag := config.get("is_mm_prefix_lm")) is not None:
        return bool(flag)
    model_type = str(config.get("model_type"))
    if model_type.startswith(_TYPES_THAT_SAY):
        return fields.word("use_bidirectional_attention") == "vision"
    return model_type in _IN_WHOLE_IMAGES
