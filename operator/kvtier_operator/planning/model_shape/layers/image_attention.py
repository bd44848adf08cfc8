"""Whether an image's tokens attend to one another in both directions, which few attention backends can.

Source: vllm/transformers_utils/model_arch_config_convertor.py (is_mm_prefix_lm), 0.32 and 0.33.
"""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.planning.model_shape.config.fields import ConfigFields

_TYPES: Final = frozenset({"bagel", "gemma3", "molmo2", "moondream3", "paligemma"})
_TYPES_THAT_SAY: Final = ("gemma4", "diffusion_gemma")


def images_both_ways(config: Mapping[str, Any], fields: ConfigFields) -> bool:
    """Tell it of a model.

    Args:
        config: Its whole config.json.
        fields: The same as it is read.
    """
    if (flag := config.get("is_mm_prefix_lm")) is not None:
        return bool(flag)
    model_type = str(config.get("model_type"))
    if model_type.startswith(_TYPES_THAT_SAY):
        return fields.word("use_bidirectional_attention") == "vision"
    return model_type in _TYPES
