"""Which models vLLM keeps one latent of a token for, and not the keys and values that it expands to."""

from typing import Final

from kvtier_operator.planning.model_shape.config.engine_data.architectures import (
    architectures_of,
    without_own_class,
)
from kvtier_operator.planning.model_shape.config.fields import ConfigFields

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
