"""Where a model's shape comes from, and what is said where it cannot be had."""

from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.shape import LayerKind
from kvtier_operator.planning.observed import Observed

LLAMA = {"num_hidden_layers": 8, "num_attention_heads": 12, "num_key_value_heads": 2, "hidden_size": 768}


def test_the_resource_wins_over_config_and_catalogue() -> None:
    one = resource("Qwen/Qwen3-32B", geometry={"layers": 2, "kvHeads": 1, "headDim": 64})
    geometry = resolve_geometry(one.spec, Observed(model_config=LLAMA))
    assert geometry.kv_bytes_per_token == 2 * 2 * 1 * 64 * 2
    assert geometry.shape.source == "spec.model.geometry"


def test_the_config_wins_over_the_catalogue() -> None:
    observed = Observed(model_config=LLAMA, model_config_source="there/config.json", weights_bytes=7)
    geometry = resolve_geometry(resource("Qwen/Qwen3-32B").spec, observed)
    assert geometry.kv_bytes_per_token == 2 * 8 * 2 * 64 * 2
    assert geometry.shape.source == "there/config.json"
    assert geometry.weights_bytes == 7


def test_weights_of_the_resource_win() -> None:
    one = resource("x/y", geometry={"kvBytesPerToken": 1000})
    assert resolve_geometry(one.spec, Observed()).weights_bytes is None
    given = one.spec.model.model_copy(update={"weights": resource(cpu="3Gi").spec.tiers.cpu.capacity})
    spec = one.spec.model_copy(update={"served_model": given})
    assert resolve_geometry(spec, Observed()).weights_bytes == 3 * 1024**3


def test_bytes_per_token_given_by_hand() -> None:
    geometry = resolve_geometry(resource("x/y", geometry={"kvBytesPerToken": 1000}).spec, Observed())
    assert geometry.kv_bytes_per_token == 1000


def test_mla_given_by_hand() -> None:
    given = {"layers": 61, "kvLoraRank": 512, "qkRopeHeadDim": 64}
    geometry = resolve_geometry(resource("x/y", geometry=given).spec, Observed())
    assert (geometry.kv_bytes_per_token, geometry.mla) == (70_272, True)


def test_windows_and_states_given_by_hand() -> None:
    given = {
        "layers": 8,
        "kvHeads": 2,
        "headDim": 64,
        "valueHeadDim": 32,
        "slidingWindow": 256,
        "slidingWindowLayers": 4,
        "linearLayers": 4,
        "stateBytesPerLayer": 4096,
    }
    geometry = resolve_geometry(resource("x/y", geometry=given).spec, Observed())
    assert [(group.kind, group.layers) for group in geometry.groups] == [
        (LayerKind.FULL, 4),
        (LayerKind.SLIDING, 4),
        (LayerKind.STATE, 4),
    ]
    assert geometry.kv_bytes_per_token == 4 * 2 * (64 + 32) * 2


@pytest.mark.parametrize("missing", ["", "the Hub was not asked"])
def test_an_unknown_model_is_told_what_to_do(missing: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        resolve_geometry(resource("Qwen/Qwen3-33B").spec, Observed(model_config_missing=missing))
    (problem,) = refused.value.problems
    assert problem.field == "spec.model.name"
    assert "(the catalogue has Qwen/Qwen3-32B and " in problem.message
    assert "--model-config" in problem.message
    assert "spec.model.geometry" in problem.message
    assert missing in problem.message
    assert ("--hub" in problem.message) is (not missing), "nobody is told to do what was done"


@pytest.mark.parametrize(
    ("name", "field", "words"),
    [
        (
            "/models/qwen3-32b",
            "spec.model.name",
            ("such as Qwen/Qwen3-32B", "file:///models/qwen3-32b of the node"),
        ),
        (
            "s3://b/models/Qwen3-32B",
            "spec.model.configRef",
            ("reads no bucket", "--load-format runai_streamer"),
        ),
    ],
)
def test_a_place_that_nothing_knows(name: str, field: str, words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as refused:
        resolve_geometry(resource(name).spec, Observed())
    (problem,) = refused.value.problems
    assert problem.field == field
    assert [
        word for word in (*words, "nothing knows the KV geometry of") if word not in problem.message
    ] == []


def test_another_generation_is_no_suggestion() -> None:
    with pytest.raises(InvalidInputError) as refused:
        resolve_geometry(resource("mistralai/Mistral-Large-3-675B-Instruct-2512").spec, Observed())
    assert "catalogue" not in str(refused.value)
    assert "same as" not in resolve_geometry(resource().spec, Observed()).shape.source
    assert "Mistral's params.json" in str(refused.value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"num_hidden_layers": "8"}, "num_hidden_layers"),
        ({"num_hidden_layers": 8.5}, "num_hidden_layers"),
        ({"num_attention_heads": None, "num_key_value_heads": None}, "num_attention_heads"),
        ({"hidden_size": -1}, "hidden_size"),
        ({"layer_types": ["full_attention", "telepathy"]}, "layer_types"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"compress_ratios": [4, 128]}, "compress_ratios"),
        ({"model_type": "qwen4_exp_text"}, "model_type"),
        ({"model_type": "glm5_next_text", "index_kpool": 4}, "index_kpool"),
        ({"attn_type_list": [0, 1]}, "attn_type_list"),
        ({"hybrid_layer_pattern": [0, 1]}, "swa_head_dim"),
        ({"hybrid_layer_pattern": "01"}, "hybrid_layer_pattern"),
        ({"block_configs": 7}, "block_configs"),
        ({"hybrid_override_pattern": "M*?"}, "hybrid_override_pattern"),
    ],
)
def test_a_config_that_cannot_be_sized_names_its_field(change: dict[str, Any], field: str) -> None:
    observed = Observed(model_config=LLAMA | change, model_config_source="config.json")
    with pytest.raises(InvalidInputError) as refused:
        resolve_geometry(resource("x/y").spec, observed)
    assert refused.value.source == "config.json"
    assert refused.value.problems[0].field == field


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hidden_size": -1}, "got -1, must be a whole number from 0 to 2,147,483,647"),
        ({"hybrid_layer_pattern": "01"}, "got '01', must be a list of whole numbers"),
    ],
)
def test_what_stands_in_place_of_a_number_is_shown(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        resolve_geometry(resource("x/y").spec, Observed(model_config=LLAMA | change))
    assert refused.value.problems[0].message == said
