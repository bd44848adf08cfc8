"""Fields that a published config.json leaves out are what the engine's classes fill in."""

import json
from importlib.resources import files
from typing import Any

import pytest

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.config import engine_data
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.shape import LayerKind

GEMMA = {"hidden_size": 2560, "num_hidden_layers": 34, "model_type": "gemma3_text", "sliding_window": 1024}


def heads(config: dict[str, Any]) -> set[tuple[int, int]]:
    return {(group.kv_heads, group.key_dim) for group in shape_from_config(config, "config.json").groups}


def test_of_a_language_model_within() -> None:
    assert heads({"model_type": "gemma3", "text_config": GEMMA}) == {(4, 256)}
    unnamed = {name: value for name, value in GEMMA.items() if name != "model_type"}
    assert heads({"model_type": "gemma3", "text_config": unnamed}) == {(4, 256)}


def test_of_a_language_model_at_the_root_of_an_older_file() -> None:
    assert heads(GEMMA | {"model_type": "gemma3"}) == {(4, 256)}


def test_of_almost_everything() -> None:
    shape = shape_from_config({"model_type": "llava", "text_config": {"model_type": "llama"}}, "config.json")
    [group] = shape.groups
    assert (group.layers, group.kv_heads, group.key_dim) == (32, 32, 128)


def test_what_follows_another_field_is_no_default() -> None:
    llama = {"model_type": "llama", "hidden_size": 2048, "num_attention_heads": 32, "num_hidden_layers": 16}
    assert heads(llama) == {(32, 64)}


def test_a_null_that_is_written_down_has_none() -> None:
    mistral = {"model_type": "mistral", "num_hidden_layers": 40}
    assert [group.kind for group in shape_from_config(mistral, "x").groups] == [LayerKind.SLIDING]
    assert [group.kind for group in shape_from_config(mistral | {"sliding_window": None}, "x").groups] == [
        LayerKind.FULL
    ]


def test_a_types_own_names() -> None:
    gpt2 = {"model_type": "gpt2", "n_embd": 1600, "n_head": 25, "n_layer": 48, "n_positions": 1024}
    shape = shape_from_config(gpt2, "config.json")
    [group] = shape.groups
    assert (group.layers, group.kv_heads, group.key_dim, shape.max_position_tokens) == (48, 25, 64, 1024)


def test_a_list_of_layers_in_place_of_their_number() -> None:
    config = {
        "model_type": "nemotron_h",  # whose class has 4 layers where nobody says more
        "layers_block_type": ["mamba", "moe", "mamba", "attention", "moe"] * 4,
        "num_key_value_heads": 2,
        "head_dim": 128,
    }
    kinds = {group.kind: group.layers for group in shape_from_config(config, "config.json").groups}
    assert kinds == {LayerKind.STATE: 8, LayerKind.FULL: 4}


def test_a_type_that_nobody_has_a_class_of() -> None:
    with pytest.raises(InvalidInputError, match="num_hidden_layers: missing or 0"):
        shape_from_config({"model_type": "of-its-own"}, "config.json")


def test_the_file_is_read_once_a_process() -> None:
    text = files(engine_data).joinpath("defaults.json").read_text(encoding="utf-8")
    table = json.loads(text)
    assert {"generated_from", "fields", "other_names"} <= set(table)
