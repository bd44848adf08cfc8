"""Parameters that compute one token, held against what the models' publishers say."""

from typing import Any

import pytest
from tests.unit.operator.planning.backends.planned import published

from kvtier_operator.planning.model_shape.catalogue import entries
from kvtier_operator.planning.model_shape.from_catalogue import shape_from_catalogue
from kvtier_operator.planning.model_shape.from_config import shape_from_config

QWEN3_30B: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
}


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("MiniMaxAI--MiniMax-M2.7", 10),
        ("Qwen--Qwen3.5-27B", 27),
        ("Qwen--Qwen3.5-35B-A3B", 3),
        ("c4ai-command-r-v01", 35),
        ("deepseek-ai--DeepSeek-V3.2", 37),
        ("gemma-3-12b-it", 12),
        ("google--gemma-4-26B-A4B", 4),
        ("meta-llama--Llama-4-Scout-17B-16E-Instruct", 17),
        ("mistral-7b-params-json", 7.2),
        ("nvidia--DeepSeek-V3.2-NVFP4", 37),
        ("nvidia--Llama-3.1-70B-Instruct-FP8", 70.6),
        ("nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", 55),
        ("nvidia--Nemotron-H-56B-Base-8K", 56),
        ("openai--gpt-oss-120b", 5.1),
        ("zai-org--GLM-5.2", 40),
    ],
)
def test_a_published_model(name: str, billions: float) -> None:
    # the publishers count embeddings, most of them
    counted = shape_from_config(published(name).model_config or {}, name).arithmetic
    assert counted is not None
    assert 0.74 * billions < counted.parameters / 1e9 < 1.02 * billions


def test_the_experts_of_a_token_are_said() -> None:
    counted = shape_from_config(QWEN3_30B, "config.json").arithmetic
    assert counted is not None
    # 48 x (2048 x 128 x 2 x (32 + 4) + 8 x 3 x 2048 x 768)
    assert counted.parameters == 48 * (2048 * 128 * 72 + 24 * 2048 * 768)
    assert "48 layers of config.json, 8 of 128 experts in 48" in counted.how


@pytest.mark.parametrize("lacks", ["moe_intermediate_size", "num_experts_per_tok"])
def test_what_a_file_does_not_say_is_not_guessed(lacks: str) -> None:
    config = {name: value for name, value in QWEN3_30B.items() if name not in (lacks, "intermediate_size")}
    assert shape_from_config(config, "config.json").arithmetic is None


def test_the_catalogue_tells_it_of_every_model() -> None:
    for name in entries():
        shape = shape_from_catalogue(name)
        assert shape is not None
        assert shape.arithmetic is not None, name
        if shape.weights_bytes:
            assert shape.arithmetic.parameters <= shape.weights_bytes
