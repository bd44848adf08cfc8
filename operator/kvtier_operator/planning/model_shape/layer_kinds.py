"""Which of a model's layers keep every token, a window of them, or a fixed state."""

from typing import Final

from kvtier_operator.planning.model_shape.config_fields import ConfigFields
from kvtier_operator.planning.model_shape.shape import LayerKind

# Spellings of `layer_types` (transformers, configuration_utils.py, ALLOWED_LAYER_TYPES; sparse attention
# caches every token: vLLM, config/model.py, _ATTENTION_LAYER_TYPES) and of `layers_block_type` (Jamba,
# Granite 4, Zamba2).
_KINDS: Final = {
    "full_attention": LayerKind.FULL,
    "attention": LayerKind.FULL,
    "indexed_attention": LayerKind.FULL,
    "deepseek_sparse_attention": LayerKind.FULL,
    "qwen_sparse_attention": LayerKind.FULL,
    "chunked_attention": LayerKind.FULL,
    "sliding_attention": LayerKind.SLIDING,
    "linear_attention": LayerKind.STATE,
    "mamba": LayerKind.STATE,
    "mamba2": LayerKind.STATE,
    "conv": LayerKind.STATE,
    "recurrent": LayerKind.STATE,
}
# One character a layer: Mamba-2, attention, MLP, MoE (NVIDIA Nemotron-H, `hybrid_override_pattern`).
_NEMOTRON_PATTERN: Final = {"M": LayerKind.STATE, "*": LayerKind.FULL, "-": None, "E": None}
_PURE_STATE_MODELS: Final = {"mamba", "mamba2", "falcon_mamba"}
# Period of the full-attention layer where config.json does not say it (transformers, the models'
# configuration_*.py: Gemma 2 alternates, Gemma 3 and Cohere 2 name their default pattern).
_DEFAULT_SLIDING_PERIOD: Final = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "cohere2": 4}


def layer_kinds(config: ConfigFields) -> tuple[LayerKind, ...]:
    """How each layer of the model keeps its past, in order; layers that keep none are left out.

    Raises:
        InvalidInputError: The file names a kind of layer that is not known, or not one for each layer.
    """
    layers = config.int("num_hidden_layers", "n_layer", "num_layers", "n_layers")
    return _from_lists(config, layers) or _from_family(config, layers) or _from_window(config, layers)


def _from_lists(config: ConfigFields, layers: int) -> tuple[LayerKind, ...]:
    """From a list of the layers' kinds; empty where the file has none."""
    if pattern := config.text("hybrid_override_pattern"):
        return _from_pattern(config, pattern)
    if names := config.strings("layer_types", "layers_block_type"):
        return _from_names(config, names, layers)
    full = config.mapping("linear_attn_config").get("full_attn_layers")
    if full:  # Kimi Linear, counted from 1
        return tuple(LayerKind.FULL if i + 1 in full else LayerKind.STATE for i in range(layers))
    return ()


def _from_family(config: ConfigFields, layers: int) -> tuple[LayerKind, ...]:
    """From what the model's family is known to do; empty for a plain transformer."""
    model_type = config.text("model_type")
    if model_type in _PURE_STATE_MODELS:
        return (LayerKind.STATE,) * layers
    if model_type == "falcon_h1":  # every layer has attention and Mamba-2 side by side
        return (LayerKind.FULL, LayerKind.STATE) * layers
    if period := config.optional_int("attn_layer_period"):  # Jamba
        offset = config.optional_int("attn_layer_offset") or 0
        return tuple(LayerKind.FULL if i % period == offset else LayerKind.STATE for i in range(layers))
    if model_type.startswith("qwen3_next"):
        period = config.optional_int("full_attention_interval") or 4
        return tuple(LayerKind.STATE if (i + 1) % period else LayerKind.FULL for i in range(layers))
    return ()


def _from_window(config: ConfigFields, layers: int) -> tuple[LayerKind, ...]:
    window = config.optional_int("sliding_window")
    if not window or config.get("use_sliding_window") is False:
        return (LayerKind.FULL,) * layers
    if config.get("use_sliding_window") is True:  # Qwen2 and Qwen3: the first layers attend to everything
        full = config.optional_int("max_window_layers") or 0
        return tuple(LayerKind.FULL if i < full else LayerKind.SLIDING for i in range(layers))
    period = config.optional_int("sliding_window_pattern") or _DEFAULT_SLIDING_PERIOD.get(
        config.text("model_type")
    )
    if period:
        return tuple(LayerKind.SLIDING if (i + 1) % period else LayerKind.FULL for i in range(layers))
    # vLLM, engine/arg_utils.py: without layer_types the window is every layer's.
    return (LayerKind.SLIDING,) * layers


def _from_names(config: ConfigFields, names: tuple[str, ...], layers: int) -> tuple[LayerKind, ...]:
    if unknown := sorted(set(names) - set(_KINDS)):
        raise config.wrong(
            "layer_types",
            f"{unknown[0]!r} is no kind of layer that kvtier knows ({', '.join(sorted(_KINDS))}); "
            "set spec.model.geometry",
        )
    if len(names) != layers:
        raise config.wrong("layer_types", f"names {len(names)} layers, num_hidden_layers is {layers}")
    return tuple(_KINDS[name] for name in names)


def _from_pattern(config: ConfigFields, pattern: str) -> tuple[LayerKind, ...]:
    if unknown := sorted(set(pattern) - set(_NEMOTRON_PATTERN)):
        raise config.wrong(
            "hybrid_override_pattern",
            f"{unknown[0]!r} is no kind of layer that kvtier knows; set spec.model.geometry",
        )
    return tuple(kind for letter in pattern if (kind := _NEMOTRON_PATTERN[letter]) is not None)
