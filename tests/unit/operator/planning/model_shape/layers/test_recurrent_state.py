"""What a linear-attention or Mamba layer keeps of one sequence, from its config.json."""

from typing import Any

import pytest

from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.shape import LayerKind

STATE = LayerKind.STATE
BASE = {"num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}


@pytest.mark.parametrize(
    ("config", "state_bytes"),
    [
        # Gated DeltaNet of Qwen3-Next: conv (2 x 128 x 16 + 128 x 32) x 3, recurrent 32 x 128 x 128, bf16
        (
            {
                "model_type": "qwen3_next",
                "linear_num_key_heads": 16,
                "linear_num_value_heads": 32,
                "linear_key_head_dim": 128,
                "linear_value_head_dim": 128,
                "linear_conv_kernel_dim": 4,
            },
            8192 * 3 * 2 + 32 * 128 * 128 * 2,
        ),
        # Mamba-2 of Nemotron-H-56B: conv (16384 + 2 x 8 x 256) x 3, state 256 x 64 x 256 in float32
        (
            {
                "hybrid_override_pattern": "M*",
                "mamba_num_heads": 256,
                "mamba_head_dim": 64,
                "ssm_state_size": 256,
                "n_groups": 8,
                "conv_kernel": 4,
                "model_type": "nemotron_h",
            },
            (16_384 + 4096) * 3 * 2 + 256 * 64 * 256 * 4,
        ),
        # Mamba-1 of Jamba: inner 2 x 4096
        (
            {
                "attn_layer_period": 8,
                "attn_layer_offset": 4,
                "hidden_size": 4096,
                "mamba_expand": 2,
                "mamba_d_state": 16,
                "mamba_d_conv": 4,
            },
            8192 * 3 * 2 + 8192 * 16 * 2,
        ),
        # LFM2: a convolution alone
        ({"full_attn_idxs": [2], "conv_L_cache": 3, "hidden_size": 2048}, 2048 * 2 * 2),
        # Kimi Delta Attention: queries, keys and values through the convolution, recurrent in float32
        (
            {
                "linear_attn_config": {
                    "full_attn_layers": [4],
                    "num_heads": 96,
                    "head_dim": 128,
                    "short_conv_kernel_size": 4,
                }
            },
            3 * 96 * 128 * 3 * 2 + 96 * 128 * 128 * 4,
        ),
        # lightning attention of Ling 2.5: no convolution
        ({"layer_group_size": 4, "num_attention_heads": 16}, 16 * 64 * 64 * 2),
        ({"layer_types": ["conv", "full_attention"] * 6}, None),  # not known
    ],
)
def test_state_of_a_linear_layer(config: dict[str, Any], state_bytes: int | None) -> None:
    shape = shape_from_config(BASE | config, "config.json")
    (group,) = [group for group in shape.groups if group.kind is STATE]
    found = None if group.state is None else group.state.rank_bytes(1, dtype_bytes=2)
    assert found == state_bytes
    assert bool(shape.notes) == (state_bytes is None)


NEMOTRON = {
    "hybrid_override_pattern": "M*",
    "mamba_num_heads": 16,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
}
QWEN = {
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "linear_conv_kernel_dim": 4,
    "layer_types": ["linear_attention"] * 11 + ["full_attention"],
}


@pytest.mark.parametrize(
    ("config", "recurrent_bytes"),
    [
        (NEMOTRON | {"architectures": ["NemotronHForCausalLM"]}, 4),  # vLLM's own choice
        (NEMOTRON | {"architectures": ["NemotronHForCausalLM"], "mamba_ssm_cache_dtype": "bfloat16"}, 2),
        (NEMOTRON | {"architectures": ["NemotronH_Nano_Omni_Reasoning_V3"]}, 0),  # not asked: the model's
        (NEMOTRON | {"model_type": "bamba", "mamba_ssm_cache_dtype": "float32"}, 0),  # as above
        (QWEN | {"model_type": "qwen3_5_text", "mamba_ssm_dtype": "float32"}, 4),
        (QWEN | {"model_type": "qwen3_5_text"}, 0),
        (QWEN | {"model_type": "qwen3_next", "mamba_ssm_dtype": "float32"}, 0),
    ],
)
def test_dtype_of_a_recurrent_state(config: dict[str, Any], recurrent_bytes: int) -> None:
    shape = shape_from_config(BASE | config, "config.json")
    states = [group.state for group in shape.groups if group.state]
    assert [state.recurrent_bytes for state in states] == [recurrent_bytes]
