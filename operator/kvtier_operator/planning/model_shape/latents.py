"""Which models vLLM keeps one latent of a token for, and not the keys and values that it expands to."""

from typing import Final

from kvtier_operator.planning.model_shape.config_fields import ConfigFields

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
other type the rank of a latent is one of its weights alone: MiniCPM3, Mistral 4, Youtu."""


def keeps_latent(config: ConfigFields) -> bool:
    """Whether full-attention layers keep a latent; a file that names no type is taken by its fields."""
    return config.has("kv_lora_rank") and (config.text("model_type") or "deepseek_v3") in LATENT_TYPES
