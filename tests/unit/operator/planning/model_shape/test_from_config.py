"""Every form of config.json that decides what a layer keeps."""

from collections import Counter
from typing import Any

import pytest

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.shape import LayerKind

FULL, SLIDING, MLA, STATE = LayerKind.FULL, LayerKind.SLIDING, LayerKind.MLA, LayerKind.STATE
GEMMA4 = {"model_type": "gemma4_text", "layer_types": ["full_attention"] * 12}
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
            {"sliding_window": 4096, "model_type": "exaone4", "sliding_window_pattern": "LLLG"},
            {SLIDING: 9, FULL: 3},
        ),
        (
            {"sliding_window": 512, "model_type": "gemma4_text", "num_hidden_layers": 10},
            {SLIDING: 8, FULL: 2},
        ),
        ({"sliding_window": 4096, "model_type": "olmo3", "num_hidden_layers": 14}, {SLIDING: 11, FULL: 3}),
        (
            {"sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 6},
            {SLIDING: 6, FULL: 6},
        ),
        ({"model_type": "qwen3_next", "full_attention_interval": 4}, {STATE: 9, FULL: 3}),
        ({"layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 3}, {STATE: 9, FULL: 3}),
        ({"layers_block_type": ["mamba"] * 11 + ["attention"]}, {STATE: 11, FULL: 1}),
        ({"layers_block_type": ["mamba", "moe"] * 5 + ["attention", "mlp"]}, {STATE: 5, FULL: 1}),
        ({"hybrid_override_pattern": "MEM*EM-M*E"}, {STATE: 4, FULL: 2}),  # Nemotron-H: E and - keep nothing
        ({"model_type": "jamba", "attn_layer_period": 6, "attn_layer_offset": 3}, {STATE: 10, FULL: 2}),
        ({"model_type": "falcon_h1"}, {FULL: 12, STATE: 12}),
        ({"linear_attn_config": {"full_attn_layers": [4, 8, 12]}, "kv_lora_rank": 512}, {STATE: 9, MLA: 3}),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, {MLA: 12}),
        # the class decides before the type: Sarvam's own, and the Transformers library's
        (
            {"architectures": ["SarvamMLAForCausalLM"], "model_type": "sarvam_mla", "kv_lora_rank": 512},
            {MLA: 12},
        ),
        ({"architectures": ["YoutuForCausalLM"], "model_type": "youtu", "kv_lora_rank": 512}, {MLA: 12}),
        ({"architectures": ["GlmForCausalLM"], "model_type": "glm", "kv_lora_rank": 512}, {MLA: 12}),
        ({"architectures": ["LlamaModel"], "model_type": "llama", "kv_lora_rank": 512}, {FULL: 12}),
        ({"model_type": "mamba2"}, {STATE: 12}),
        ({"layers_block_type": ["mamba", "moe", "attention", "mlp"] * 3}, {STATE: 3, FULL: 3}),  # Nemotron 3
        ({"layers_block_type": ["mamba", "mamba", "hybrid"] * 2}, {STATE: 6, FULL: 2}),  # Zamba2
        ({"model_type": "lfm2", "full_attn_idxs": [2, 5, 8]}, {STATE: 9, FULL: 3}),
        # two attentions a layer
        ({"model_type": "longcat_flash", "num_layers": 3, "kv_lora_rank": 512}, {MLA: 6}),
        ({"model_type": "minimax_m2", "attn_type_list": [0] * 12}, {FULL: 12}),  # which vLLM does not read
        ({"loop_num": 3, "loop_window_size": 64}, {FULL: 12, SLIDING: 24}),
        # Ling 2.5: the last layer of each group; Ling 3: also what is left after the last whole group
        ({"layer_group_size": 5, "hidden_size": 512}, {STATE: 10, FULL: 2}),
        ({"layer_group_size": 5, "short_conv_kernel_size": 4}, {STATE: 8, FULL: 4}),
        # Gemma 3n: the last 4 of 12 read what the layers before them keep
        (
            {
                "sliding_window": 512,
                "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 3,
                "num_kv_shared_layers": 4,
            },
            {SLIDING: 6, FULL: 2},
        ),
        # vLLM alternates gpt-oss by number, whatever the list says
        (
            {"sliding_window": 128, "model_type": "gpt_oss", "layer_types": ["full_attention"] * 12},
            {SLIDING: 6, FULL: 6},
        ),
        # Step 3.5 lists the layers that draft, too
        (
            {"sliding_window": 512, "layer_types": ["full_attention", *["sliding_attention"] * 3] * 4},
            {SLIDING: 9, FULL: 3},
        ),
        (
            {"block_configs": [{"attention": {"n_heads_in_group": 8}}, {"attention": {"no_op": True}}] * 6},
            {FULL: 6},
        ),
        # 1 is a window
        (
            {
                "hybrid_layer_pattern": [0, 1, 1] * 4,
                "sliding_window_size": 128,
                "swa_head_dim": 192,
                "swa_num_key_value_heads": 8,
            },
            {FULL: 4, SLIDING: 8},
        ),
    ],
)
def test_kinds_of_layers(config: dict[str, Any], expected: dict[LayerKind, int]) -> None:
    assert layers(**config) == expected


@pytest.mark.parametrize(
    ("config", "heads", "dims"),
    [
        # MiMo V2: windows have heads of their own, and values are narrower than keys
        (
            {
                "hybrid_layer_pattern": [1] * 12,
                "sliding_window_size": 128,
                "swa_head_dim": 192,
                "swa_v_head_dim": 128,
                "swa_num_key_value_heads": 8,
            },
            8,
            (192, 128),
        ),
        ({"hybrid_layer_pattern": [0] * 12, "v_head_dim": 32}, 2, (64, 32)),
        ({"param_sink_number": 128, "v_channels": 128}, 2, (64, 128)),
        # Step 3.5
        (
            {
                "sliding_window": 512,
                "layer_types": ["sliding_attention"] * 12,
                "attention_other_setting": {
                    "attention_type": "sliding_attention",
                    "num_attention_groups": 4,
                    "head_dim": 96,
                },
            },
            4,
            (96, 96),
        ),
        ({"model_type": "minicpm3", "qk_nope_head_dim": 64, "qk_rope_head_dim": 32}, 8, (96, 96)),
        ({"block_configs": [{"attention": {"n_heads_in_group": 4}}]}, 2, (64, 64)),
        (GEMMA4 | {"num_global_key_value_heads": 1}, 2, (512, 512)),
        (GEMMA4 | {"num_global_key_value_heads": 1, "attention_k_eq_v": True}, 1, (512, 512)),
    ],
)
def test_heads_that_differ_from_layer_to_layer(
    config: dict[str, Any], heads: int, dims: tuple[int, int]
) -> None:
    (group,) = shape_from_config(BASE | config, "config.json").groups
    assert (group.kv_heads, (group.key_dim, group.value_dim)) == (heads, dims)


def test_a_window_of_cohere_counts_the_token_itself() -> None:
    shape = shape_from_config(BASE | {"model_type": "cohere2", "sliding_window": 4096}, "config.json")
    assert {group.window_tokens for group in shape.groups} == {0, 4097}


HY_V4 = {
    "model_type": "hy_v4",
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "index_head_dim": 128,
    "layer_types": ["deepseek_sparse_attention"] * 6 + ["full_attention"] * 6,
}
LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_topk": 2048, "index_head_dim": 128}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (LATENT, {132: 12}),
        # GLM-5.2: every fourth layer from the third on
        (LATENT | {"index_topk_freq": 4, "index_skip_topk_offset": 3}, {132: 5, 0: 7}),
        (LATENT | {"index_topk_freq": 4}, {132: 4, 0: 8}),  # vLLM's default offset is 2
        # HY V4: of the 6 sparse layers, the first and the one after each fourth
        (HY_V4, {132: 3, 0: 9}),
        (HY_V4 | {"indexer_types": ["full"] * 12}, {132: 6, 0: 6}),
        (LATENT | {"index_topk_pattern": "FSSSFSSSFSSS"}, {132: 3, 0: 9}),
        # MiniMax-M3: keys in bfloat16, beside keys and values
        (
            {
                "sparse_attention_config": {
                    "sparse_attention_freq": [0, 0, *[1] * 10],
                    "sparse_index_dim": 128,
                }
            },
            {0: 2, 256: 10},
        ),
    ],
)
def test_layers_with_an_indexer(config: dict[str, Any], expected: dict[int, int]) -> None:
    shape = shape_from_config(BASE | config, "config.json")
    found: Counter[int] = Counter()
    for group in shape.groups:
        found[group.index_bytes] += group.layers
    assert found == expected
    dense = sum(group.layers for group in shape.groups if not group.sparse)
    assert dense == {"hy_v4": 6}.get(config.get("model_type", ""), 0 if "kv_lora_rank" in config else 12)


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
        # MiniCPM3: the heads that it makes of its latent
        (
            {
                "model_type": "minicpm3",
                "kv_lora_rank": 256,
                "qk_nope_head_dim": 64,
                "qk_rope_head_dim": 32,
            },
            8,
            96,
        ),
    ],
)
def test_heads_and_their_size(config: dict[str, Any], heads: int, dim: int) -> None:
    (group,) = shape_from_config(BASE | config, "config.json").groups
    assert (group.kv_heads, group.key_dim, group.value_dim) == (heads, dim, dim)


def test_the_language_model_of_a_multimodal_one() -> None:
    nested = {"model_type": "of-its-own", "vision_config": {"num_hidden_layers": 27}, "text_config": BASE}
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


def test_a_latent_that_only_the_weights_have() -> None:
    latent = {"kv_lora_rank": 256, "qk_rope_head_dim": 64}
    assert layers(model_type="mistral4", **latent) == {FULL: 12}
    assert layers(model_type="deepseek_v3", **latent) == {MLA: 12}


def test_what_stands_beside_a_language_model_is_not_its_own() -> None:
    nested = {"head_dim": 1280, "max_sequence_length": 16384, "text_config": BASE | {"head_dim": None}}
    with pytest.raises(InvalidInputError, match="hidden_size: missing"):
        shape_from_config(nested, "config.json")
    nested["text_config"] = BASE | {"max_position_embeddings": 32768}
    shape = shape_from_config(nested, "config.json")
    assert (shape.groups[0].key_dim, shape.max_position_tokens) == (64, 32768)


@pytest.mark.parametrize(
    ("config", "computes_in"),
    [
        (BASE | {"dtype": "bfloat16"}, "bfloat16"),
        ({"text_config": BASE | {"torch_dtype": "float16"}}, "float16"),
        (BASE | {"llm_config": "another.json"}, ""),
    ],
)
def test_what_a_model_computes_in(config: dict[str, Any], computes_in: str) -> None:
    assert shape_from_config(config, "config.json").computes_in == computes_in
