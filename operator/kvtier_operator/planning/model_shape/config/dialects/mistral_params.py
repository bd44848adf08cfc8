"""Mistral's own params.json, in config.json's names (vLLM, transformers_utils/configs/mistral.py)."""

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
