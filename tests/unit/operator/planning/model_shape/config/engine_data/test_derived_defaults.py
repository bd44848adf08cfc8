"""What a configuration class works out of other fields, a plan works out of them, too."""

from typing import Any

import pytest

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.shape import LayerKind, ModelShape

KEYS_AND_VALUES, BYTES = 2, 2
DBRX = {
    "model_type": "dbrx",
    "d_model": 6144,
    "n_layers": 40,
    "n_heads": 48,
    "attn_config": {"kv_n_heads": 8},
}
CHATGLM = {"model_type": "chatglm", "num_layers": 40, "num_attention_heads": 32, "multi_query_group_num": 2}
DEEPSEEK_TINY = {
    "model_type": "deepseek_v2",
    "hidden_size": 1280,
    "num_hidden_layers": 12,
    "num_attention_heads": 10,
    "num_key_value_heads": 10,
    "kv_lora_rank": None,
    "qk_rope_head_dim": 0,
    "use_mla": False,
}
BLOOM = {"model_type": "bloom", "n_embed": 4096, "n_layer": 30, "num_attention_heads": 32}
ZAMBA2 = {
    "model_type": "zamba2",
    "num_hidden_layers": 54,
    "num_attention_heads": 32,
    "hidden_size": 2560,
    "hybrid_layer_ids": [6, 12, 18, 24, 30, 36, 42, 47, 51],
    "n_mamba_heads": 80,
    "mamba_headdim": 64,
}
OLMO = {"model_type": "olmo_hybrid", "hidden_size": 3840, "num_hidden_layers": 32, "num_attention_heads": 30}
YOUTU = {"model_type": "youtu", "hidden_size": 2048, "num_hidden_layers": 32, "num_attention_heads": 16}
BAMBA = {"model_type": "bamba", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}
ULTRAVOX = {"model_type": "ultravox", "text_model_id": "Qwen/Qwen3-32B"}
MOONDREAM3 = {"model_type": "moondream3"}
PUZZLE = {
    "model_type": "nemotron_h_puzzle",
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "block_configs": [{"block_type": name} for name in ("mamba", "moe", "attention", "moe")],
}


def shape(config: dict[str, Any]) -> ModelShape:
    return shape_from_config(config, "config.json")


@pytest.mark.parametrize(
    ("config", "layers", "heads", "head_dim"),
    [
        (DBRX, 40, 8, 128),
        (CHATGLM, 40, 2, 128),
        ({"model_type": "deepseek_vl_v2", "language_config": DEEPSEEK_TINY}, 12, 10, 128),
        (BLOOM, 30, 32, 128),
        (ZAMBA2, 9, 32, 160),
        (OLMO, 8, 30, 128),
        (YOUTU | {"qk_rope_head_dim": 96}, 32, 16, 96),
        (BAMBA | {"hidden_size": 4096, "attn_layer_indices": [9, 18, 27]}, 3, 8, 128),
        (ULTRAVOX, 64, 8, 128),
        (MOONDREAM3, 24, 32, 64),
        (MOONDREAM3 | {"config": {"text": {"dim": 1024, "n_layers": 12, "n_kv_heads": 8}}}, 12, 8, 32),
        (MOONDREAM3 | {"text_config": {"dim": 2048, "n_layers": 6}}, 6, 32, 64),
        (PUZZLE, 1, 8, 128),
    ],
)
def test_bytes_of_a_token(config: dict[str, Any], layers: int, heads: int, head_dim: int) -> None:
    kept = [group for group in shape(config).groups if group.kind is not LayerKind.STATE]
    per_token = sum(group.layers * group.elements_per_token * BYTES for group in kept)
    assert per_token == layers * KEYS_AND_VALUES * heads * head_dim * BYTES


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        (CHATGLM | {"seq_length": 131072}, 131072),
        (CHATGLM, 2048),
        (MOONDREAM3, 4096),
        (MOONDREAM3 | {"config": {"text": {"max_context": 8192}}}, 8192),
    ],
)
def test_the_longest_sequence(config: dict[str, Any], tokens: int) -> None:
    assert shape(config).max_position_tokens == tokens


def test_the_state_of_olmo() -> None:
    worked_out = shape(OLMO)
    written = {"linear_num_key_heads": 30, "linear_num_value_heads": 30, "linear_conv_kernel_dim": 4}
    written |= {"linear_key_head_dim": 96, "linear_value_head_dim": 192}
    assert worked_out.groups == shape(OLMO | written).groups
    assert worked_out.groups[0].state is not None


def test_a_zamba2_of_other_layers_names_them() -> None:
    with pytest.raises(InvalidInputError, match=r"layers_block_type: missing; .* 54 layers"):
        shape(ZAMBA2 | {"num_hidden_layers": 81})


def test_a_language_model_that_is_not_known() -> None:
    unknown = ULTRAVOX | {"text_model_id": "nobody/nothing"}
    with pytest.raises(InvalidInputError, match="text_model_id: 'nobody/nothing' is not in the catalogue"):
        shape(unknown)
    text = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 32}
    assert shape(unknown | {"text_config": text}).groups[0].layers == 2
