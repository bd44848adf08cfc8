"""Every form of config.json that decides what a layer keeps."""

from typing import Any

import pytest

from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.shape import LayerKind

FULL, SLIDING, MLA, STATE = LayerKind.FULL, LayerKind.SLIDING, LayerKind.MLA, LayerKind.STATE
BASE = {"num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}


def layers(**config: Any) -> dict[LayerKind, int]:  # noqa: ANN401 - config.json's fields
    shape = shape_from_config(BASE | config, "config.json")
    return {group.kind: group.layers for group in shape.groups}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, {FULL: 12}),
        ({"sliding_window": None}, {FULL: 12}),
        ({"sliding_window": 4096}, {SLIDING: 12}),  # Mistral 7B v0.1
        ({"sliding_window": 0}, {FULL: 12}),  # vLLM takes 0 for none
        ({"sliding_window": 4096, "use_sliding_window": False}, {FULL: 12}),  # Qwen2.5
        ({"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 9}, {FULL: 9, SLIDING: 3}),
        ({"sliding_window": 1024, "sliding_window_pattern": 6}, {SLIDING: 10, FULL: 2}),
        ({"sliding_window": 1024, "model_type": "gemma3_text"}, {SLIDING: 10, FULL: 2}),
        # the full layers end the periods: the 6th and the 12th of 14
        ({"sliding_window": 1024, "model_type": "gemma3", "num_hidden_layers": 14}, {SLIDING: 12, FULL: 2}),
        ({"sliding_window": 4096, "model_type": "gemma2"}, {SLIDING: 6, FULL: 6}),
        ({"sliding_window": 4096, "model_type": "cohere2"}, {SLIDING: 9, FULL: 3}),
        (
            {"sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 6},
            {SLIDING: 6, FULL: 6},
        ),
        ({"model_type": "qwen3_next", "full_attention_interval": 4}, {STATE: 9, FULL: 3}),
        ({"layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 3}, {STATE: 9, FULL: 3}),
        ({"layers_block_type": ["mamba"] * 11 + ["attention"]}, {STATE: 11, FULL: 1}),
        ({"hybrid_override_pattern": "MEM*EM-M*E"}, {STATE: 4, FULL: 2}),  # Nemotron-H: E and - keep nothing
        ({"model_type": "jamba", "attn_layer_period": 6, "attn_layer_offset": 3}, {STATE: 10, FULL: 2}),
        ({"model_type": "falcon_h1"}, {FULL: 12, STATE: 12}),
        ({"linear_attn_config": {"full_attn_layers": [4, 8, 12]}, "kv_lora_rank": 512}, {STATE: 9, MLA: 3}),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, {MLA: 12}),
        ({"model_type": "mamba2"}, {STATE: 12}),
    ],
)
def test_kinds_of_layers(config: dict[str, Any], expected: dict[LayerKind, int]) -> None:
    assert layers(**config) == expected


@pytest.mark.parametrize(
    ("config", "heads", "dim"),
    [
        ({}, 2, 64),
        ({"head_dim": None, "hidden_size": 1024}, 2, 128),
        ({"num_key_value_heads": None}, 8, 64),
        ({"num_key_value_heads": None, "multi_query": True}, 1, 64),
        (
            {
                "num_key_value_heads": None,
                "multi_query": True,
                "new_decoder_architecture": True,
                "n_head_kv": 4,
            },
            4,
            64,
        ),
        ({"num_key_value_heads": None, "attn_config": {"kv_n_heads": 4}}, 4, 64),
    ],
)
def test_heads_and_their_size(config: dict[str, Any], heads: int, dim: int) -> None:
    (group,) = shape_from_config(BASE | config, "config.json").groups
    assert (group.kv_heads, group.key_dim, group.value_dim) == (heads, dim, dim)


def test_the_language_model_of_a_multimodal_one() -> None:
    nested = {"model_type": "gemma3", "vision_config": {"num_hidden_layers": 27}, "text_config": BASE}
    assert shape_from_config(nested, "config.json").groups == shape_from_config(BASE, "config.json").groups


def test_the_thinker_of_an_omni_model() -> None:
    nested = {"thinker_config": {"text_config": BASE}}
    assert shape_from_config(nested, "config.json").groups == shape_from_config(BASE, "config.json").groups


def test_wider_heads_of_full_attention_layers() -> None:
    config = BASE | {
        "sliding_window": 1024,
        "layer_types": ["sliding_attention"] * 10 + ["full_attention"] * 2,
        "global_head_dim": 512,
        "num_global_key_value_heads": 1,
    }
    sliding, full = shape_from_config(config, "config.json").groups
    assert (sliding.kv_heads, sliding.key_dim) == (2, 64)
    assert (full.kv_heads, full.key_dim) == (1, 512)


@pytest.mark.parametrize(
    ("quantization", "dtype_bytes"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 2),  # weights only
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, 1),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": None}, 2),
        ({"quant_method": "modelopt", "quantization": {"kv_cache_quant_algo": "FP8"}}, 1),
    ],
)
def test_the_cache_follows_its_own_scheme(quantization: dict[str, Any], dtype_bytes: int) -> None:
    config = BASE | {"quantization_config": quantization, "torch_dtype": "float32"}
    assert shape_from_config(config, "config.json").dtype_bytes == dtype_bytes


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
                "mamba_ssm_cache_dtype": "float32",
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
        ({"model_type": "lfm2", "layer_types": ["conv", "full_attention"] * 6}, 0),  # not known
    ],
)
def test_state_of_a_linear_layer(config: dict[str, Any], state_bytes: int) -> None:
    shape = shape_from_config(BASE | config, "config.json")
    (state,) = [group for group in shape.groups if group.kind is STATE]
    assert state.state_bytes == state_bytes
    assert bool(shape.notes) == (state_bytes == 0)
