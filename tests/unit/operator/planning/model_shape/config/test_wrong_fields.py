"""A field of a config.json that is not what it must be is named, and not left out."""

from typing import Any

import pytest

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.from_config import shape_from_config

BASE = {"hidden_size": 512, "num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2}
MAMBA2 = {"model_type": "bamba", "layers_block_type": ["mamba", "attention"] * 6, "mamba_n_heads": 16}
SPARSE = {"sparse_attention_freq": [1] * 12}


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"model_type": ["llama"]}, "model_type: got ['llama'], must be text"),
        ({"text_config": [1]}, "text_config: got [1], must be an object"),
        ({"text_config": "x"}, "text_config: got 'x', must be an object"),
        ({"architectures": "X"}, "architectures: got 'X', must be a list of words"),
        ({"layer_types": "full_attention"}, "layer_types: got 'full_attention', must be a list of words"),
        ({"layer_types": {"a": 1}}, "layer_types: got {'a': 1}, must be a list of words"),
        ({"layer_types": [["full_attention"]] * 12}, "layer_types: got "),
        ({"quantization_config": "fp8"}, "quantization_config: got 'fp8', must be an object"),
        ({"quantization_config": ["fp8"]}, "quantization_config: got ['fp8'], must be an object"),
        (
            {"quantization_config": {"quant_method": "compressed-tensors", "kv_cache_scheme": "fp8"}},
            "quantization_config.kv_cache_scheme: got 'fp8', must be an object",
        ),
        ({"rope_scaling": "linear", "max_position_embeddings": 8192}, "rope_scaling: got 'linear', must be"),
        ({"torch_dtype": "float8"}, "torch_dtype: got 'float8', must be a dtype"),
        ({"attn_config": {"kv_n_heads": "x"}}, "attn_config.kv_n_heads: got 'x', must be a whole number"),
        ({"num_key_value_heads": [2] * 12}, "num_key_value_heads: got "),
        ({"model_type": "qwen3_next", "full_attention_interval": 0}, "full_attention_interval: got 0, must"),
        ({"attn_layer_period": 0}, "attn_layer_period: got 0, must"),
        ({"sliding_window": 512, "sliding_window_pattern": 0}, "sliding_window_pattern: got 0, must"),
        (MAMBA2 | {"mamba_d_head": "wide"}, "mamba_d_head: got 'wide', must be a whole number"),
        (
            {"linear_attn_config": {"full_attn_layers": [4], "num_heads": "x", "head_dim": 8}},
            "linear_attn_config.num_heads: got 'x', must be a whole number",
        ),
        ({"sparse_attention_config": SPARSE}, "sparse_attention_config.sparse_index_dim: missing or 0"),
        ({"full_attn_idxs": [99]}, "full_attn_idxs: names none of the 12 layers"),
        ({"full_attn_idxs": [-1]}, "full_attn_idxs: names none of the 12 layers"),
        (
            {"linear_attn_config": {"full_attn_layers": [0, 13]}},
            "linear_attn_config.full_attn_layers: names none of the 12 layers",
        ),
        ({"hybrid_override_pattern": "-E"}, "hybrid_override_pattern: '-E' has no layer that keeps anything"),
        ({"num_kv_shared_layers": 99}, "num_kv_shared_layers: got 99, must be less than the 12 layers"),
    ],
)
def test_what_is_wrong_is_named(config: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        shape_from_config(BASE | config, "config.json")
    assert str(refused.value).startswith(f"config.json: {named}")


@pytest.mark.parametrize(
    ("config", "head_dim"),
    [
        ({"mamba_d_head": "auto", "mamba_expand": 2}, 64),
        ({"mamba_expand": 4}, 128),
        ({"mamba_d_head": "auto", "mamba_expand": 2, "mamba_d_ssm": 256}, 16),
        ({"mamba_d_head": 32}, 32),
    ],
)
def test_the_size_of_a_head_that_is_worked_out(config: dict[str, Any], head_dim: int) -> None:
    state = {"mamba_d_state": 128, "mamba_d_conv": 4}
    shape = shape_from_config(BASE | MAMBA2 | state | config, "config.json")
    found = next(group.state for group in shape.groups if group.state is not None)
    assert found.recurrent_elements == 16 * head_dim * 128
