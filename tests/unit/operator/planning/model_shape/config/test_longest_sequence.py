"""The longest sequence that vLLM derives of a config.json."""

import math
from typing import Any

import pytest

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.from_config import shape_from_config

BASE = {"num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({}, None),
        ({"max_position_embeddings": 8192}, 8192),
        ({"max_position_embeddings": 8192, "seq_length": 4096}, 4096),  # the smallest counts
        ({"max_position_embeddings": 8192, "model_max_length": 131072}, 131072),  # Command R
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4.0}}, 16384),
        ({"max_position_embeddings": 4096, "rope_parameters": {"rope_type": "dynamic", "factor": 2}}, 8192),
        ({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "yarn", "factor": 4}}, 131072),
        ({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8}}, 131072),
        ({"max_position_embeddings": 32768, "rope_scaling": {"type": "mrope", "mrope_section": []}}, 32768),
        (
            {
                "max_position_embeddings": 131072,
                "original_max_position_embeddings": 4096,
                "rope_scaling": {"type": "longrope", "long_factor": []},
            },
            4096,  # Phi-3: longer only where the user says so
        ),
        (
            {
                "max_position_embeddings": 4096,
                "rope_parameters": {
                    "full_attention": {"rope_type": "linear", "factor": 8},
                    "sliding_attention": {"rope_type": "default"},
                },
            },
            32768,
        ),
    ],
)
def test_what_vllm_derives(config: dict[str, Any], tokens: int | None) -> None:
    assert shape_from_config(BASE | config, "config.json").max_position_tokens == tokens


@pytest.mark.parametrize("factor", [0, -4, True, "8", math.nan, math.inf, 1e308])
@pytest.mark.parametrize("name", ["rope_scaling", "rope_parameters"])
def test_a_factor_that_is_none(name: str, factor: object) -> None:
    config = BASE | {"max_position_embeddings": 8192, name: {"type": "linear", "factor": factor}}
    with pytest.raises(InvalidInputError, match=rf"^config\.json: {name}\.factor: got .* above 0"):
        shape_from_config(config, "config.json")


def test_a_kind_that_is_no_text() -> None:
    config = BASE | {"max_position_embeddings": 8192, "rope_scaling": {"rope_type": ["yarn"], "factor": 2.0}}
    with pytest.raises(InvalidInputError, match=r"^config\.json: rope_scaling\.rope_type: got .* text"):
        shape_from_config(config, "config.json")


def test_gemma_3_is_scaled_already() -> None:
    text = {"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    shape = shape_from_config({"model_type": "gemma3_text", **text}, "config.json")
    assert shape.max_position_tokens == 131072
