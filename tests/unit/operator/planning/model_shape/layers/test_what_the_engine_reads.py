"""Fields that a model's class in vLLM does not read, or reads otherwise than others do."""

from typing import Any

import pytest

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.shape import LayerKind

FULL, SLIDING, MLA = LayerKind.FULL, LayerKind.SLIDING, LayerKind.MLA
LAYERS = {
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "sliding_window": 512,
}
HALF = {"layer_types": ["sliding_attention", "full_attention"] * 2}
GEMMA = LAYERS | HALF | {"model_type": "gemma4_text"}
SAVED = {"per_layer_config": {number: {"head_dim": 512, "num_key_value_heads": 2} for number in "13"}}


@pytest.mark.parametrize(
    ("config", "kinds"),
    [
        (LAYERS | HALF | {"model_type": "mixtral"}, {FULL}),
        (LAYERS | {"model_type": "mixtral"}, {SLIDING}),
        (LAYERS | HALF | {"model_type": "gemma3_text"}, {SLIDING, FULL}),
        (LAYERS | HALF | {"model_type": "gemma3_text", "sliding_window": None}, {FULL}),
        (LAYERS | {"model_type": "deepseek_v3", "kv_lora_rank": 512, "qk_rope_head_dim": 64}, {MLA}),
        (LAYERS | {"model_type": "llama", "sliding_window": 0, "interleaved_sliding_window": 9}, {FULL}),
    ],
)
def test_kinds(config: dict[str, Any], kinds: set[LayerKind]) -> None:
    assert {group.kind for group in shape_from_config(config, "config.json").groups} == kinds


def test_gemma_4_saved_again() -> None:
    groups = shape_from_config(GEMMA | SAVED, "config.json").groups
    assert {(group.kind, group.kv_heads, group.key_dim) for group in groups} == {
        (FULL, 2, 512),
        (SLIDING, 8, 64),
    }


def test_falcon_keeps_its_own_dtype() -> None:
    config = {"model_type": "falcon", "num_hidden_layers": 4, "num_attention_heads": 16, "hidden_size": 1024}
    assert all(group.own_dtype for group in shape_from_config(config, "config.json").groups)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"model_type": "llama", "num_attention_heads": 2048}, "num_attention_heads"),
        ({"hybrid_override_pattern": "M*", "mamba_num_heads": 8, "mamba_head_dim": []}, "mamba_head_dim"),
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "quantization_config.quant_method"),
        ({"quantization_config": {"quant_method": "gptq", "desc_act": True}}, "quantization_config.desc_act"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 3}}, "quantization_config.bits"),
        ({"quantization_config": {"quant_method": "gptq", "sym": False}}, "quantization_config.sym"),
    ],
)
def test_refused(config: dict[str, Any], field: str) -> None:
    plain = {"num_hidden_layers": 2, "num_attention_heads": 16, "hidden_size": 1024}
    with pytest.raises(InvalidInputError, match=f"config.json: {field}: "):
        shape_from_config(plain | config, "config.json")
