"""Mistral's params.json is read as vLLM reads it."""

from typing import Any

from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.shape import LayerKind

PARAMS = {"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8}


def groups(**further: Any) -> list[tuple[LayerKind, int, int, int, int]]:  # noqa: ANN401 - params.json's fields
    shape = shape_from_config(PARAMS | further, "params.json")
    return [
        (group.kind, group.layers, group.kv_heads, group.key_dim, group.window_tokens)
        for group in shape.groups
    ]


def test_its_names() -> None:
    assert groups() == [(LayerKind.FULL, 32, 8, 128, 0)]
    shape = shape_from_config(PARAMS, "params.json")
    assert (shape.attention_heads, shape.max_position_tokens) == (32, 128_000)
    assert shape_from_config(PARAMS | {"max_position_embeddings": 32768}, "x").max_position_tokens == 32768


def test_windows() -> None:
    assert groups(sliding_window=4096) == [(LayerKind.SLIDING, 32, 8, 128, 4096)]
    assert groups(sliding_window=[32768, None, None, None]) == [
        (LayerKind.SLIDING, 8, 8, 128, 32768),
        (LayerKind.FULL, 24, 8, 128, 0),
    ]


def test_a_latent() -> None:
    latent = groups(kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128)
    assert latent == [(LayerKind.MLA, 32, 1, 576, 0)]


def test_its_quantisation() -> None:
    shape = shape_from_config(PARAMS | {"quantization": {"qformat_weight": "fp8_e4m3"}}, "params.json")
    assert shape.has_cache_scales


def test_others_with_like_names_are_none() -> None:
    mpt = {"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "max_seq_len": 65536}
    assert shape_from_config(mpt, "config.json").max_position_tokens == 65536
