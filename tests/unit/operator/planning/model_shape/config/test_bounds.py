"""A plan ends, and says what is wrong, whatever numbers a config.json has."""

import math
from typing import Any

import pytest

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.layers.mtp import mtp_layers

BASE = {"num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}


@pytest.mark.parametrize("number", [10**7, 10**400, 1e18, math.inf, math.nan, -1])
@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("num_hidden_layers", {}),
        ("n_layer", {"num_hidden_layers": None}),
        ("num_layers", {"num_hidden_layers": None}),
        ("num_layers", {"model_type": "longcat_flash"}),
        ("loop_num", {"loop_window_size": 64}),
        ("num_kv_shared_layers", {}),
    ],
)
def test_layers(name: str, config: dict[str, Any], number: float) -> None:
    with pytest.raises(
        InvalidInputError, match=rf"^x: {name}: got .*, must be a whole number from 0 to 10,000$"
    ):
        shape_from_config(BASE | config | {name: number}, "x")


@pytest.mark.parametrize("number", [2**31, 1e30, math.inf, math.nan, -8, [8]])
@pytest.mark.parametrize("name", ["head_dim", "num_key_value_heads", "max_position_embeddings"])
def test_sizes(name: str, number: object) -> None:
    with pytest.raises(InvalidInputError, match=rf"^x: {name}: got .* from 0 to 2,147,483,647$"):
        shape_from_config(BASE | {name: number}, "x")


def test_layers_that_are_gone_through_again() -> None:
    with pytest.raises(InvalidInputError, match="loop_num: 9,999 loops of 12 layers"):
        shape_from_config(BASE | {"loop_window_size": 64, "loop_num": 9999}, "x")


def test_layers_that_predict() -> None:
    config = {"model_type": "deepseek_v3", "num_nextn_predict_layers": 10**9}
    with pytest.raises(InvalidInputError, match="num_nextn_predict_layers: got 1000000000"):
        mtp_layers(ConfigFields(BASE | config, "x"))


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("layer_types", ["full_attention"] * 10_001),
        ("layers_block_type", ["mamba"] * 10_001),
        ("hybrid_override_pattern", "M" * 10_001),
        ("full_attn_idxs", [1] * 10_001),
        ("block_configs", [{}] * 10_001),
    ],
)
def test_lists_of_layers(name: str, entries: object) -> None:
    with pytest.raises(InvalidInputError, match=f"^x: {name}: has 10,001 entries, must be at most 10,000$"):
        shape_from_config(BASE | {name: entries}, "x")


@pytest.mark.parametrize(
    ("blocks", "words"),
    [([None], r"\[0\]: got None"), ([{"attention": {"no_op": True}}, "x"], r"\[1\]: got 'x'"), ("x", "")],
)
def test_blocks_that_are_none(blocks: object, words: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^x: block_configs{words}.*must be a"):
        shape_from_config(BASE | {"block_configs": blocks}, "x")


def test_mistrals_layers_that_are_no_number() -> None:
    config = {"dim": 4096, "n_layers": "x", "n_heads": 32, "sliding_window": [1, None]}
    with pytest.raises(InvalidInputError, match=r"^x: num_hidden_layers: got 'x'"):
        shape_from_config(config, "x")
