"""Moondream 3's configuration in the names of others (vLLM, transformers_utils/configs/moondream3.py)."""

from collections.abc import Mapping
from typing import Any, Final

_TYPE: Final = "moondream3"
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
    return config.get("model_type") == _TYPE


def from_moondream3(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same file with its language model where others have it."""
    parts = config.get("config")
    text = (parts.get("text") if isinstance(parts, Mapping) else None) or config.get("text_config")
    part = text if isinstance(text, Mapping) else {}
    fields = {name: part.get(name, part.get(own, default)) for name, own, default in _FIELDS}
    return {**config, "text_config": fields}
