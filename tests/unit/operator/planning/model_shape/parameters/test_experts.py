"""How much of a model's weights are routed experts, by configurations as published.

Those of published models are what vLLM 0.32's own modules have of them (`w13_weight`, `w2_weight`), and the
layers that predict tokens further on; vLLM pads gpt-oss's by 9 %.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from kvtier_operator.planning.model_shape.catalogue import entries
from kvtier_operator.planning.model_shape.from_catalogue import shape_from_catalogue
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.shape import Experts, ModelShape

MODELS = Path(__file__).parents[5] / "cases/models"
DENSE = {"model_type": "qwen3", "num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 1024}
MOE = DENSE | {"model_type": "qwen3_moe", "num_experts": 8, "moe_intermediate_size": 512}
MATRICES = 8 * 3 * 1024 * 512


def of_config(config: dict[str, Any]) -> Experts | None:
    return shape_from_config(config, "config.json").experts


def shape_of_model(model: str) -> ModelShape:
    config = json.loads((MODELS / model / "config.json").read_text(encoding="utf-8"))
    return shape_from_config(config, "config.json")


def of_model(model: str) -> Experts | None:
    return shape_of_model(model).experts


@pytest.mark.parametrize(
    ("model", "experts_bytes"),
    [
        # layers x experts x 3 matrices x hidden x width x bytes
        ("deepseek-ai--DeepSeek-V3.2", (61 - 3 + 1) * 256 * 3 * 7168 * 2048),
        ("openai--gpt-oss-120b", 36 * 128 * 3 * 2880 * 2880 * 17 // 32),
        ("meta-llama--Llama-4-Scout-17B-16E-Instruct", 48 * 16 * 3 * 5120 * 8192 * 2),
        ("MiniMaxAI--MiniMax-M2.7", 62 * 256 * 3 * 3072 * 1536),
        ("MiniMaxAI--MiniMax-M3", (57 + 1) * 128 * 3 * 6144 * 3072 * 2),
        ("LongCat-Flash-Chat", 28 * 512 * 3 * 6144 * 2048 * 2),
        ("Qwen--Qwen3.5-35B-A3B", 41 * 256 * 3 * 2048 * 512 * 2),
        ("google--gemma-4-26B-A4B", 30 * 128 * 3 * 2816 * 704 * 2),
        ("moonshotai--Kimi-K3", 92 * 896 * 3 * 3584 * 3072 * 17 // 32),
        ("zai-org--GLM-5.2", (75 + 1) * 256 * 3 * 6144 * 2048 * 2),
        # up and down alone, of a latent
        ("nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", (48 + 1) * 512 * 2 * 2048 * 5120 * 2),
        ("gemma-3-12b-it", 0),
        ("Qwen--Qwen3.5-27B", 0),
        ("nvidia--Nemotron-H-56B-Base-8K", 0),
    ],
)
def test_published_models(model: str, experts_bytes: int) -> None:
    assert of_model(model) == Experts(experts_bytes)


@pytest.mark.parametrize(
    ("fields", "layers", "sixteenths"),
    [
        ({}, 4, 32),
        ({"mlp_only_layers": [0]}, 3, 32),
        ({"decoder_sparse_step": 2}, 2, 32),
        ({"moe_layer_freq": [0, 1, 1, 0]}, 2, 32),
        ({"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"]}, 3, 32),
        ({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}, 4, 8.25),
        ({"quantization_config": {"quant_method": "fp8"}}, 4, 16),
    ],
    ids=str,
)
def test_layers_and_elements(fields: dict[str, Any], layers: int, sixteenths: float) -> None:
    assert of_config(MOE | fields) == Experts(int(layers * MATRICES * sixteenths / 16))


@pytest.mark.parametrize(
    "fields",
    [
        {"model_type": "mixtral"},
        {"model_type": "any_moe"},
        {"experts_per_layer": 8},
        {"num_experts": 8, "moe_intermediate_size": [512, 256]},
        {**MOE, "quantization_config": {"quant_method": "torchao"}},
    ],
    ids=str,
)
def test_what_is_not_understood_is_not_known(fields: dict[str, Any]) -> None:
    assert of_config(DENSE | fields) is None


@pytest.mark.parametrize(
    ("experts", "weights", "within"),
    [
        (Experts(0), 10, 0),
        (Experts(8), 10, 8),
        (Experts(8), 4, None),  # more than all weights: quantised otherwise than is said
        (Experts(8), 20, None),  # less than half of them
        (Experts(8, 10), 20, 16),
        (Experts.by_share(0.966), 1000, 966),
    ],
)
def test_experts_within_weights(experts: Experts, weights: int, within: int | None) -> None:
    assert experts.within(weights) == within


@pytest.mark.parametrize(
    ("entry", "model", "weights_bytes"),
    [
        ("openai/gpt-oss-120b", "openai--gpt-oss-120b", 65_248_815_744),
        (
            "meta-llama/Llama-4-Scout-17B-16E-Instruct",
            "meta-llama--Llama-4-Scout-17B-16E-Instruct",
            2 * 108_641_793_536,
        ),
        ("deepseek-ai/DeepSeek-V3.2", "deepseek-ai--DeepSeek-V3.2", 689_486_000_000),
        ("Qwen/Qwen3.5-35B-A3B", "Qwen--Qwen3.5-35B-A3B", 2 * 35_950_000_000),
    ],
)
def test_the_catalogue_says_the_same(entry: str, model: str, weights_bytes: int) -> None:
    listed, described = shape_from_catalogue(entry), shape_of_model(model)
    assert listed is not None
    assert listed.experts is not None
    assert described.experts is not None
    whole = described.experts.within(weights_bytes)
    assert listed.experts.within(weights_bytes) == pytest.approx(whole, rel=0.01)
    assert (listed.matrices, listed.hidden_size) == (described.matrices, described.hidden_size)


@pytest.mark.parametrize("entry", [name for name in entries() if name != "nvidia/DeepSeek-V3.2-NVFP4"])
def test_every_entry_of_the_catalogue_tells_its_experts(entry: str) -> None:
    shape = shape_from_catalogue(entry)
    assert shape is not None
    assert shape.experts is not None
    assert shape.matrices
