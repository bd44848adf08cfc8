"""Whether a model's attention has sinks, learned logits beside those of its tokens, which few backends can.

Source: vLLM 0.32 and 0.33, model_executor/models/gpt_oss.py, granite.py, laguna.py, mimo_v2.py.
"""

from typing import Final

from kvtier_operator.planning.model_shape.config.fields import ConfigFields

_TYPES: Final = frozenset({"gpt_oss"})
_TYPES_OF_WINDOWS: Final = frozenset({"granite", "granitemoe"})
"""Which have them where the file says a kind for each layer, unless it says `attention_sinks`."""
_FIELDS: Final = ("swa_attention_sink_enabled", "add_swa_attention_sink_bias")


def has_sinks(fields: ConfigFields) -> bool:
    """Tell it of a model."""
    model_type = fields.text("model_type")
    if model_type in _TYPES_OF_WINDOWS:
        flag = fields.get("attention_sinks")
        return fields.has("layer_types") if flag is None else bool(flag)
    return model_type in _TYPES or any(bool(fields.get(name)) for name in _FIELDS)
