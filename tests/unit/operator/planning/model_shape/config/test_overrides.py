"""--hf-overrides changes what is planned, as it changes what the engine reads."""

import json
from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.observed import Observed

CONFIG = {
    "model_type": "qwen3",
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 4096,
}
QUANTISED = CONFIG | {"quantization_config": {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}}
LLAMA = {**CONFIG, "model_type": "llama", "hidden_size": 256}
del LLAMA["head_dim"]
GEMMA = CONFIG | {"model_type": "gemma3_text", "num_hidden_layers": 6, "sliding_window": 512}
GEMMA4 = CONFIG | {
    "model_type": "gemma4_text",
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "sliding_window": 512,
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 1,
    "global_head_dim": 128,
}
NESTED = {"model_type": "any", "text_config": CONFIG}


def geometry(overrides: object, config: dict[str, Any] | None = None, model: str = "a/b") -> Geometry:
    text = overrides if isinstance(overrides, str) else json.dumps(overrides)
    one = resource(model, engine={"extraArgs": ["--hf-overrides", text]})
    return resolve_geometry(one.spec, Observed(model_config=config))


@pytest.mark.parametrize(
    ("overrides", "config", "model", "field"),
    [
        ({"num_hidden_layers": -1}, CONFIG, "a/b", "num_hidden_layers"),
        ({"num_hidden_layers": 1e18}, None, "Qwen/Qwen3-32B", "num_hidden_layers"),
        ({"text_config": {"head_dim": "x"}}, NESTED, "a/b", "head_dim"),
        ({"rope_scaling": {"rope_type": "linear", "factor": -4}}, CONFIG, "a/b", "rope_scaling.factor"),
    ],
)
def test_a_wrong_one_is_named_by_its_argument(
    overrides: object, config: dict[str, Any] | None, model: str, field: str
) -> None:
    start = rf"^planning: spec\.engine\.extraArgs\[0\]: --hf-overrides: {field}: got "
    with pytest.raises(InvalidInputError, match=start):
        geometry(overrides, config, model)


def test_a_wrong_field_of_the_file_is_the_files() -> None:
    with pytest.raises(InvalidInputError, match=r"^config\.json with --hf-overrides: head_dim: got 'x'"):
        geometry({"num_hidden_layers": 2}, CONFIG | {"head_dim": "x"})


@pytest.mark.parametrize(
    ("overrides", "config", "per_token"),
    [
        ({}, CONFIG, 4 * 512),
        ({"num_hidden_layers": 2}, CONFIG, 2 * 512),
        ({"head_dim": 128, "num_key_value_heads": 1}, CONFIG, 4 * 512),
        ({"text_config": {"num_hidden_layers": 1}}, NESTED, 512),
        ({"num_hidden_layers": 1}, NESTED, 4 * 512),  # the root's, where vLLM does not look
        ({"rope_scaling": {"rope_type": "yarn"}}, CONFIG, 4 * 512),
        ({"quantization_config": {"quant_method": "awq"}}, QUANTISED, 4 * 512),  # as a whole
        ({"hidden_size": 512}, LLAMA, 4 * 512),  # heads are of the size that the file's width gives
        ({"hidden_size": 512, "head_dim": 32}, LLAMA, 4 * 256),
        ({"sliding_window_pattern": 2}, GEMMA, 512),  # of 5 windows before each layer of full attention
        ({"attention_k_eq_v": False}, GEMMA4, 2 * 512),
    ],
)
def test_fields_take_another_value(overrides: object, config: dict[str, Any], per_token: int) -> None:
    assert geometry(overrides, config).kv_bytes_per_token == per_token


def test_the_catalogue_s_fields_too() -> None:
    found = geometry({"num_hidden_layers": 32, "max_position_embeddings": 8192}, model="Qwen/Qwen3-32B")
    assert (found.kv_bytes_per_token, found.shape.max_position_tokens) == (131_072, 8192)
    assert found.weights_bytes is not None
    assert found.shape.source.startswith("catalogue, ")
    assert found.shape.source.endswith("with --hf-overrides")


def test_dotted_fields() -> None:
    arguments = ["--hf-overrides.num_hidden_layers=2", "--hf_overrides.head_dim", "32"]
    one = resource("a/b", engine={"extraArgs": arguments})
    found = resolve_geometry(one.spec, Observed(model_config=CONFIG))
    assert found.kv_bytes_per_token == 2 * 256


def test_a_geometry_of_the_resource_stands() -> None:
    given = {"kvBytesPerToken": 1000}
    one = resource(geometry=given, engine={"extraArgs": ["--hf-overrides={}"]})
    assert resolve_geometry(one.spec, Observed()).kv_bytes_per_token == 1000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[1]", "expected a JSON object"),
        ("my.module.function", "is no JSON"),
        ('{"num_hidden_layers": NaN}', "NaN is no number"),
        ('{"num_hidden_layers": 1e999}', "1e999 is no number"),
        ("{" * 4000, "is no JSON"),
        ('{"a":' * 60 + "1" + "}" * 60, "within one another"),
        ("[" * 4000, "is no JSON"),
    ],
)
def test_what_is_no_object_is_said(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said) as error:
        geometry(text, CONFIG)
    assert "spec.engine.extraArgs[0]" in str(error.value)


def test_a_value_that_is_none_is_named() -> None:
    with pytest.raises(InvalidInputError, match="num_hidden_layers"):
        geometry({"num_hidden_layers": "many"}, CONFIG)


def test_a_language_model_that_stands_by_itself_is_the_part_within() -> None:
    """The catalogue keeps some multimodal models' language models alone; a file says what it has."""
    model = "Qwen/Qwen3-32B"
    nested = geometry({"text_config": {"num_hidden_layers": 2}}, model=model)
    assert nested.kv_bytes_per_token == geometry({"num_hidden_layers": 2}, model=model).kv_bytes_per_token
    assert nested.kv_bytes_per_token * 32 == geometry({}, model=model).kv_bytes_per_token
    with pytest.raises(InvalidInputError, match=r"--hf-overrides: text_config: .* has no text_config"):
        geometry({"text_config": {"num_hidden_layers": 2}}, CONFIG)
