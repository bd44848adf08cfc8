"""Files that describe a model in words of their own, put into those of most."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.planning.model_shape.config.engine_data.defaults import MOST_LAYERS

_NAMES: Final = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
}
_LONGEST_SEQUENCE: Final = 128_000  # where the file does not say it


def is_mistral_params(config: Mapping[str, Any]) -> bool:
    """Whether these are Mistral's names: other files with `n_layers` give a `hidden_size` or a `d_model`."""
    return "dim" in config and "n_layers" in config and "hidden_size" not in config


def from_mistral_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The same file in config.json's names."""
    config = {_NAMES.get(name, name): value for name, value in params.items()}
    config["max_position_embeddings"] = params.get("max_position_embeddings") or _LONGEST_SEQUENCE
    config["model_type"] = "deepseek_v3" if params.get("qk_nope_head_dim") else params.get("model_type")
    windows = params.get("sliding_window")
    if isinstance(windows, list) and windows:
        kinds = ["full_attention" if window is None else "sliding_attention" for window in windows]
        layers = params["n_layers"]
        if isinstance(layers, int) and 0 < layers <= MOST_LAYERS:  # what else it is, is refused by its name
            config["layer_types"] = kinds * (layers // len(windows))
        config["sliding_window"] = next((window for window in windows if window), None)
    quantization = params.get("quantization")
    if isinstance(quantization, Mapping) and quantization.get("quant_method"):
        config["quantization_config"] = quantization
    elif isinstance(quantization, Mapping) and quantization.get("qformat_weight") == "fp8_e4m3":
        config["quantization_config"] = {"quant_method": "fp8"}
    return config


_MOONDREAM3: Final = "moondream3"
# Its own name of each field, and what the class takes where a file leaves it out.
_FIELDS: Final = (
    ("hidden_size", "dim", 2048),
    ("num_hidden_layers", "n_layers", 24),
    ("num_attention_heads", "n_heads", 32),
    ("num_key_value_heads", "n_kv_heads", 32),
    ("max_position_embeddings", "max_context", 4096),
)


def is_moondream3(config: Mapping[str, Any]) -> bool:
    """Whether a whole file is of this type."""
    return config.get("model_type") == _MOONDREAM3


def from_moondream3(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same file with its language model where others have it."""
    parts = config.get("config")
    text = (parts.get("text") if isinstance(parts, Mapping) else None) or config.get("text_config")
    part = text if isinstance(text, Mapping) else {}
    fields = {name: part.get(name, part.get(own, default)) for name, own, default in _FIELDS}
    return {**config, "text_config": fields}
