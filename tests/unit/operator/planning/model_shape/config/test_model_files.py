"""A model's files, and the ConfigMap with them, become one config.json."""

import json
import math
from typing import Any

import pytest

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.config.model_files import MOST_COMPACT_BYTES, compact, config_of_map

CONFIG = {"num_hidden_layers": 4}
QUANTIZATION = {"producer": {"name": "modelopt"}}


def config_map(**data: object) -> dict[str, Any]:
    return {"data": {name.replace("_json", ".json"): json.dumps(value) for name, value in data.items()}}


def test_a_config_map() -> None:
    config, source = config_of_map(
        config_map(config_json=CONFIG, hf_quant_config_json=QUANTIZATION), "ConfigMap x"
    )
    assert config == CONFIG | {"quantization_config": QUANTIZATION}
    assert source == "ConfigMap x, config.json and hf_quant_config.json"


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "data: has neither config.json nor params.json"),
        ({"data": None}, "has neither"),
        ({"data": {"hf_quant_config.json": "{}"}}, "has neither"),
        ({"data": {"config.json": "{"}}, "data[config.json]: not JSON: "),
        ({"data": {"config.json": "[]"}}, "holds no JSON object"),
        (
            {"data": {"config.json": "{}", "hf_quant_config.json": "{"}},
            "data[hf_quant_config.json]: not JSON: ",
        ),
        ({"data": {"config.json": '{"a":' * 40 + "1" + "}" * 40}}, "more than 32 objects"),
        ({"data": {"config.json": f'{{"num_hidden_layers": {"1" * 5000}}}'}}, "not JSON: "),
    ],
)
def test_one_without_a_configuration(document: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        config_of_map(document, "ConfigMap x")
    assert str(refused.value).startswith("ConfigMap x: data")
    assert words in str(refused.value)


def test_an_infinity_that_models_are_published_with() -> None:
    config, _ = config_of_map(config_map(config_json={"time_step_limit": [0.0, math.inf]}), "ConfigMap x")
    assert config == {"time_step_limit": [0.0, math.inf]}


def test_what_is_long_and_says_nothing_of_layers_is_left_out() -> None:
    layers = ["full_attention"] * 200
    quantization = {"quant_method": "modelopt", "ignore": [f"model.layers.{n}.mlp.gate" for n in range(2000)]}
    kept = compact(CONFIG | {"layer_types": layers, "quantization_config": quantization}, "x")
    assert json.loads(kept) == CONFIG | {
        "layer_types": layers,
        "quantization_config": {"quant_method": "modelopt"},
    }
    assert len(kept) < MOST_COMPACT_BYTES


def test_what_is_long_all_the_same_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="more than the 16 KiB"):
        compact({f"field_{number}": "x" * 100 for number in range(200)}, "ConfigMap x")
