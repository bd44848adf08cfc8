"""Which of a model's layers keep every token, a window of them, or a fixed state."""

from collections.abc import Sequence
from typing import Final

from kvtier_operator.planning.model_shape.config.engine_data.architectures import (
    architectures_of,
    gives_no_windows,
)
from kvtier_operator.planning.model_shape.config.engine_data.defaults import MOST_LAYERS
from kvtier_operator.planning.model_shape.config.fields import ConfigFields
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
    "sparse_attention": LayerKind.FULL,
    "sparse": LayerKind.FULL,
    "chunked_attention": LayerKind.SLIDING,
    "sliding_attention": LayerKind.SLIDING,
    "linear_attention": LayerKind.STATE,
    "mamba": LayerKind.STATE,
    "mamba2": LayerKind.STATE,
    "conv": LayerKind.STATE,
    "recurrent": LayerKind.STATE,
}
# Kinds of layers that keep nothing of the past (Nemotron-H).
_KEEP_NOTHING: Final = {"mlp", "moe"}
# One layer with both (Zamba2: shared attention before a Mamba-2 block; Falcon-H1).
_BOTH: Final = "hybrid"
# One character a layer: Mamba-2, attention, MLP, MoE (NVIDIA Nemotron-H, `hybrid_override_pattern`).
_NEMOTRON_PATTERN: Final = {"M": LayerKind.STATE, "*": LayerKind.FULL, "-": None, "E": None}
_PURE_STATE_MODELS: Final = {"mamba", "mamba2", "falcon_mamba"}
# vLLM alternates by number, whatever the list says, and begins with a window (models/gpt_oss.py).
_ALTERNATING: Final = {"gpt_oss"}
_EVERY_LAYER_FULL: Final = {"minimax_m2", "minimax_m3", "minimax_m3_text", "minimax_m3_vl"}
_ALL_OR_NONE: Final = ("Qwen2For", "Qwen2Model", "Qwen3For", "Qwen3Model", "MiMoFor")
_LINEAR: Final = "linear_attention"
_LONGCAT: Final = "longcat_flash"
_LLAMA4: Final = "llama4"
_LLAMA4_PERIOD: Final = 4
# transformers, configuration_zamba2.py.
_ZAMBA2_LAYERS: Final = 54
_ZAMBA2_HYBRID: Final = {6, 12, 18, 24, 30, 36, 42, 47, 51}


def layer_kinds(config: ConfigFields) -> tuple[LayerKind, ...]:
    """How each layer of the model keeps its past, in order; layers that keep none are left out.

    Raises:
        InvalidInputError: The file names a kind of layer that is not known, or not one for each layer.
    """
    if pattern := config.text("hybrid_override_pattern"):
        return _from_pattern(config, pattern)
    if names := config.strings("layers_block_type"):  # Nemotron-H, Jamba, Zamba2: one name a block
        return _from_names(config, "layers_block_type", names)
    if names := tuple(
        block.text("block_type") for block in config.parts("block_configs")
    ):  # Nemotron-H Puzzle
        return _from_names(config, "block_configs", names)
    layers = _layers(config)
    if config.text("model_type") == "zamba2":
        return _of_zamba2(config, layers)
    if config.has("loop_window_size"):  # IQuest's loop coder: each further loop has a window
        loops = config.layers("loop_num") or 2
        if layers * loops > MOST_LAYERS:
            raise config.error(
                "loop_num", f"{loops:,} loops of {layers:,} layers, kvtier plans {MOST_LAYERS:,}"
            )
        return (LayerKind.FULL,) * layers + (LayerKind.SLIDING,) * layers * (loops - 1)
    windows = interleaved_windows(config, layers)
    kinds = tuple(LayerKind.SLIDING if window else LayerKind.FULL for window in windows)
    kinds = kinds or _from_lists(config, layers) or _from_family(config, layers)
    kinds = kinds or _from_window(config, layers)
    _refuse_some_windows(config, kinds)
    if LayerKind.SLIDING in kinds and (_says_no_window(config) or _sees_no_windows(config, kinds)):
        kinds = tuple(LayerKind.FULL if kind is LayerKind.SLIDING else kind for kind in kinds)
    shared = config.layers("num_kv_shared_layers")  # Gemma 3n and 4: the last ones keep nothing
    if shared and shared >= layers:
        raise config.error("num_kv_shared_layers", f"got {shared:,}, must be less than the {layers:,} layers")
    return kinds[: layers - shared] if shared else kinds


def _refuse_some_windows(config: ConfigFields, kinds: tuple[LayerKind, ...]) -> None:
    """Qwen's class takes windows in all layers or in none (vLLM, models/qwen2.py, Qwen2Model)."""
    mixed = {LayerKind.FULL, LayerKind.SLIDING} <= set(kinds)
    if mixed and any(name.startswith(_ALL_OR_NONE) for name in architectures_of(config)):
        layers = config.optional_int("max_window_layers") or 0
        if layers != len(kinds):
            raise config.error(
                "max_window_layers",
                f"{layers} of {len(kinds)} layers without a window: vLLM does not start where some layers of "
                "this model have one; set use_sliding_window to false in --hf-overrides",
            )


# Their modules name windows, of other models' layers (vLLM, models/commandr.py, glm4.py).
_WITHOUT_OWN_WINDOWS: Final = {"cohere", "glm4"}
_DRAFT: Final = "DraftModel"  # has a class of its own, whatever the type
_WINDOW: Final = "sliding_window"


def _sees_no_windows(config: ConfigFields, kinds: tuple[LayerKind, ...]) -> bool:
    """Whether some layers are to have windows that the model's class does not give them.

    The engine's own is set only where all layers have it (vLLM, engine/arg_utils.py, create_engine_config).
    """
    model_type = config.text("model_type")
    if is_chunked(config) or any(name.endswith(_DRAFT) for name in architectures_of(config)):
        return False
    without = model_type in _WITHOUT_OWN_WINDOWS or gives_no_windows(model_type)
    return without and set(kinds) != {LayerKind.SLIDING}


def _says_no_window(config: ConfigFields) -> bool:
    """Whether the file has a null in the window's place, with which layers keep every token."""
    null = _WINDOW in config.names and not config.has(_WINDOW, "sliding_window_size", "loop_window_size")
    return null and not is_chunked(config) and not interleaved_window(config)


def _layers(config: ConfigFields) -> int:
    if config.text("model_type").startswith(_LONGCAT) and config.has("num_layers"):
        return 2 * (config.layers("num_layers") or 0)  # two attentions a layer
    names = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
    return config.layers(*names) or config.int(*names)


def _from_lists(config: ConfigFields, layers: int) -> tuple[LayerKind, ...]:
    """From a list of the layers' kinds; empty where the file has none, or none that vLLM reads."""
    model_type = config.text("model_type")
    if model_type in _EVERY_LAYER_FULL:  # MiniMax-M2's attn_type_list is of an earlier model's code
        return (LayerKind.FULL,) * layers
    if model_type in _ALTERNATING:
        return tuple(LayerKind.FULL if i % 2 else LayerKind.SLIDING for i in range(layers))
    if model_type.startswith(_LLAMA4):
        return _of_llama4(config, layers)
    if names := config.strings("layer_types"):
        return _from_layer_types(config, names, layers)
    if numbers := config.numbers("hybrid_layer_pattern"):  # MiMo V2: 1 is a window
        return tuple(LayerKind.SLIDING if number else LayerKind.FULL for number in numbers[:layers])
    name, full = _full_layers(config)
    if full and not any(0 <= number < layers for number in full):
        raise config.error(
            name, f"names none of the {layers:,} layers; give the model's own, or leave it out"
        )
    return _from_full_layers(full, layers)


def is_chunked(config: ConfigFields) -> bool:
    """Whether some layers attend within chunks only: Llama 4. MiMo V2 says so, too, but does not."""
    return config.text("model_type").startswith(_LLAMA4) and bool(config.optional_int("attention_chunk_size"))


def _of_llama4(config: ConfigFields, layers: int) -> tuple[LayerKind, ...]:
    """Layers without rotary positions attend to everything, the others to their chunk, if there are any."""
    without = config.numbers("no_rope_layers") or tuple((i + 1) % _LLAMA4_PERIOD for i in range(layers))
    chunked = LayerKind.SLIDING if is_chunked(config) else LayerKind.FULL
    return tuple(chunked if number else LayerKind.FULL for number in without[:layers])


def _from_full_layers(full: tuple[int, ...], layers: int) -> tuple[LayerKind, ...]:
    """From the numbers of those that attend to everything; empty where there are none."""
    numbers = frozenset(full)
    return tuple(LayerKind.FULL if i in numbers else LayerKind.STATE for i in range(layers)) if full else ()


def _full_layers(config: ConfigFields) -> tuple[str, tuple[int, ...]]:
    """Numbers of the layers that attend to everything, and their field; others keep a state."""
    for name in ("full_attn_idxs", "attn_layer_indices"):  # LFM2, Bamba
        if numbers := config.numbers(name):
            return name, numbers
    linear = config.part("linear_attn_config")
    # Kimi Linear, counted from 1
    numbers = linear.numbers("full_attn_layers")
    return "linear_attn_config.full_attn_layers", tuple(number - 1 for number in numbers)


def _from_family(config: ConfigFields, layers: int) -> tuple[LayerKind, ...]:
    """From what the model's family is known to do; empty for a plain transformer."""
    model_type = config.text("model_type")
    if model_type in _PURE_STATE_MODELS:
        return (LayerKind.STATE,) * layers
    if model_type == "falcon_h1":  # every layer has attention and Mamba-2 side by side
        return (LayerKind.FULL, LayerKind.STATE) * layers
    if period := config.period("attn_layer_period"):  # Jamba
        offset = config.optional_int("attn_layer_offset") or 0
        return _from_full_layers(tuple(range(offset, layers, period)), layers)
    if period := config.period("layer_group_size"):
        return _from_group_size(config, period, layers)
    if model_type.startswith(("qwen3_next", "qwen3_5", "qwen4_exp")):
        period = config.period("full_attention_interval") or 4
        return _from_full_layers(tuple(range(period - 1, layers, period)), layers)
    names = config.default_layer_types(layers)
    return _from_names(config, "layer_types", names) if _LINEAR in names else ()


def _of_zamba2(config: ConfigFields, layers: int) -> tuple[LayerKind, ...]:
    """Where no `layers_block_type` is: the class has one list, whatever `hybrid_layer_ids` says."""
    if layers != _ZAMBA2_LAYERS:
        raise config.error(
            "layers_block_type",
            f"missing; transformers knows the {_ZAMBA2_LAYERS} layers of Zamba2 2.7B alone",
        )
    names = tuple("hybrid" if i in _ZAMBA2_HYBRID else "mamba" for i in range(layers))
    return _from_names(config, "layers_block_type", names)


def _from_group_size(config: ConfigFields, period: int, layers: int) -> tuple[LayerKind, ...]:
    """Ling and Ring: the last layer of each group attends to everything.

    With Kimi Delta Attention so do layers after the last whole group (vLLM, models/bailing_moe_v3.py,
    _is_kda_layer; bailing_moe_linear.py, is_linear_layer).
    """
    grouped = layers // period * period if config.has("short_conv_kernel_size") else layers
    return tuple(
        LayerKind.STATE if (i + 1) % period and i < grouped else LayerKind.FULL for i in range(layers)
    )


def _from_window(config: ConfigFields, layers: int) -> tuple[LayerKind, ...]:
    window = config.optional_int("sliding_window")
    if not window or config.get("use_sliding_window") is False:
        return (LayerKind.FULL,) * layers
    if config.get("use_sliding_window") is True:  # Qwen2 and Qwen3: the first layers attend to everything
        full = config.optional_int("max_window_layers") or 0
        return tuple(LayerKind.FULL if i < full else LayerKind.SLIDING for i in range(layers))
    if period := _period(config):
        return tuple(LayerKind.SLIDING if (i + 1) % period else LayerKind.FULL for i in range(layers))
    if names := config.default_layer_types(layers):
        return _from_names(config, "layer_types", names)
    # vLLM, engine/arg_utils.py: without layer_types the window is every layer's.
    return (LayerKind.SLIDING,) * layers


def _period(config: ConfigFields) -> int | None:
    """After how many layers one attends to everything, where the file says it; EXAONE writes it as LLLG."""
    if letters := config.word("sliding_window_pattern"):
        return len(letters)
    return config.period("sliding_window_pattern", "global_attn_every_n_layers")


def _from_layer_types(config: ConfigFields, names: tuple[str, ...], layers: int) -> tuple[LayerKind, ...]:
    if len(names) < layers:
        raise config.error("layer_types", f"names {len(names)} layers, num_hidden_layers is {layers}")
    return _from_names(config, "layer_types", names[:layers])  # what is left are layers that draft (Step 3.5)


def _from_names(config: ConfigFields, field: str, names: tuple[str, ...]) -> tuple[LayerKind, ...]:
    kinds: list[LayerKind] = []
    for name in names:
        if name == _BOTH:
            kinds += (LayerKind.FULL, LayerKind.STATE)
        elif name not in _KEEP_NOTHING:
            if name not in _KINDS:
                known = ", ".join(sorted({*_KINDS, *_KEEP_NOTHING, _BOTH}))
                raise config.error(
                    field,
                    f"{name!r} is no kind of layer that kvtier knows ({known}); set spec.model.geometry",
                )
            kinds.append(_KINDS[name])
    return tuple(kinds)


def _from_pattern(config: ConfigFields, pattern: str) -> tuple[LayerKind, ...]:
    if unknown := sorted(set(pattern) - set(_NEMOTRON_PATTERN)):
        raise config.error(
            "hybrid_override_pattern",
            f"{unknown[0]!r} is no kind of layer that kvtier knows; set spec.model.geometry",
        )
    kinds = tuple(kind for letter in pattern if (kind := _NEMOTRON_PATTERN[letter]) is not None)
    if not kinds:
        raise config.error("hybrid_override_pattern", f"{pattern!r} has no layer that keeps anything")
    return kinds


# Source: vLLM 0.32 and 0.33, models/openpangu.py and plamo3.py, per_layer_sliding_window.
_FIELD: Final = "interleaved_sliding_window"
_READS_WINDOWS: Final = "pangu"  # the classes of openpangu.py alone
_PLAMO3: Final = "plamo3"


def interleaved_windows(config: ConfigFields, layers: int) -> tuple[int, ...]:
    """Tokens of each layer's window, 0 for one that attends to everything; empty where a file has none."""
    model_type = config.text("model_type").lower()
    value = config.get(_FIELD) if not model_type or _READS_WINDOWS in model_type else None
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        windows = tuple(0 if window is None else window for window in value)
        if not all(type(window) is int and window >= 0 for window in windows):
            raise config.error(_FIELD, "must be a whole number, or a list of whole numbers and nulls")
        return tuple(windows[i % len(windows)] for i in range(layers))
    if value is not None:
        return (config.int(_FIELD),) * layers
    if config.text("model_type") != _PLAMO3 or not config.has("window_size"):
        return ()
    # its own configuration class makes the list: the last layer of each period attends to everything
    period = config.int("sliding_window_pattern")
    return tuple(config.int("window_size") if (i + 1) % period else 0 for i in range(layers))


def interleaved_window(config: ConfigFields) -> int:
    """The one size of those windows; 0 where there is none.

    Raises:
        InvalidInputError: The windows are of several sizes, which kvtier does not size.
    """
    value = config.get(_FIELD)
    longest = len(value) if isinstance(value, Sequence) else 1
    sizes = set(interleaved_windows(config, max(longest, 2))) - {0}
    if len(sizes) > 1:
        raise config.error(
            _FIELD, "has windows of several sizes, which kvtier cannot size; set spec.model.geometry"
        )
    return next(iter(sizes), 0)
