"""The layers that speculative decoding adds, by method and by what is known of the draft."""

import json
from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.observed import Observed

LLAMA = "meta-llama/Llama-3.1-8B"
HEAD = {"num_hidden_layers": 1, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
BASE = {"num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}
LAYER = 2 * 2 * 64 * 2
"""Bytes of one token in one layer of BASE."""
NEXTN = {"num_nextn_predict_layers": 1}


def drafted(
    name: str,
    /,
    observed: Observed | None = None,
    ranks: int = 1,
    **config: Any,  # noqa: ANN401 - vLLM's fields
) -> Geometry:
    engine = {"extraArgs": ["-sc", json.dumps(config)], "tensorParallelSize": ranks} if config else {}
    return resolve_geometry(resource(name, engine=engine).spec, observed or Observed())


def added(config: dict[str, Any]) -> int:
    observed = Observed(model_config=config)
    with_draft = drafted("a/b", observed, method="mtp", num_speculative_tokens=1)
    return with_draft.kv_bytes_per_token - drafted("a/b", observed).kv_bytes_per_token


@pytest.mark.parametrize(
    ("model", "bytes_per_token"),
    [
        ("Qwen/Qwen3.5-35B-A3B", 22_528),
        ("deepseek-ai/DeepSeek-V3", 62 * 576 * 2),
        ("deepseek-ai/DeepSeek-V3.2", 62 * (576 * 2 + 132)),
        ("zai-org/GLM-4.5", 93 * 2 * 8 * 128 * 2),
    ],
)
def test_a_model_of_the_catalogue_predicts_by_itself(model: str, bytes_per_token: int) -> None:
    geometry = drafted(model, method="mtp", num_speculative_tokens=1)
    assert geometry.kv_bytes_per_token == bytes_per_token
    assert geometry.weights_bytes == drafted(model).weights_bytes  # they are in the checkpoint
    assert geometry.draft is not None
    assert not geometry.draft.is_estimate


@pytest.mark.parametrize(
    ("config", "layers"),
    [
        ({"model_type": "mimo", "num_nextn_predict_layers": 2}, 2),
        ({"model_type": "qwen3_next"}, 1),  # vLLM's default where the file has no count
        ({"model_type": "glm4_moe"}, 1),  # transformers' default
        ({"model_type": "glm4_moe", "num_nextn_predict_layers": 0}, 0),
        ({"model_type": "llama", **NEXTN}, 0),  # vLLM has no predictor for the type
        ({"model_type": "minimax_m2", "num_mtp_modules": 3}, 0),
        ({"model_type": "qwen3_5", "text_config": {**BASE, "mtp_num_hidden_layers": 1}}, 1),
        ({"model_type": "nemotron_h", **NEXTN, "mtp_hybrid_override_pattern": "*E*E"}, 2),
        ({"model_type": "nemotron_h", **NEXTN, "mtp_layers_block_type": ["attention", "moe"]}, 1),
        ({"model_type": "nemotron_h", **NEXTN, "mtp_layers_block_type": ["full_attention", "moe"]}, 1),
    ],
)
def test_how_many_layers_predict(config: dict[str, Any], layers: int) -> None:
    shape = {} if "text_config" in config else BASE
    assert added(shape | config) == layers * LAYER


@pytest.mark.parametrize(("model_type", "layers"), [("deepseek_v3", 2), ("longcat_flash", 1)])
def test_a_predictor_keeps_a_latent_as_its_model_does(model_type: str, layers: int) -> None:
    config = BASE | {"model_type": model_type, "num_nextn_predict_layers": 2}
    assert added(config) == layers * (512 + 64) * 2


def test_a_predictor_may_have_a_window() -> None:
    types = ["full_attention"] * 6 + ["sliding_attention"] * 6
    config = BASE | {"layer_types": types, "sliding_window": 128}
    exaone = config | {"model_type": "exaone_moe", **NEXTN, "mtp_layer_types": ["sliding_attention"]}
    windowed = drafted("a/b", Observed(model_config=exaone), method="mtp", num_speculative_tokens=1)
    assert {group.kind: group.layers for group in windowed.groups} == {"full": 6, "sliding": 7}
    whole = exaone | {"mtp_layer_types": ["full_attention"]}
    kept = drafted("a/b", Observed(model_config=whole), method="mtp", num_speculative_tokens=1)
    assert {group.kind: group.layers for group in kept.groups} == {"full": 7, "sliding": 6}


def test_a_draft_with_its_own_configuration() -> None:
    observed = Observed(draft_config=HEAD, draft_config_source="head/config.json", draft_weights_bytes=10**9)
    geometry = drafted(LLAMA, observed, model="a/head", method="eagle", num_speculative_tokens=3)
    assert geometry.kv_bytes_per_token == 135_168
    assert geometry.weights_bytes == 16_060_522_496 + 10**9
    assert "head/config.json" in " ".join(geometry.notes)


def test_a_draft_of_the_speculators_library() -> None:
    config = {"speculators_model_type": "eagle3", "transformer_layer_config": HEAD | {"num_hidden_layers": 2}}
    geometry = drafted(LLAMA, Observed(draft_config=config), model="a/eagle3", num_speculative_tokens=3)
    assert geometry.kv_bytes_per_token == 131_072 + 2 * 4096


def test_a_draft_model_of_the_catalogue() -> None:
    geometry = drafted(LLAMA, model="meta-llama/Llama-3.2-1B", num_speculative_tokens=3)
    assert geometry.kv_bytes_per_token == 131_072 + 32_768
    assert geometry.weights_bytes == 16_060_522_496 + 2_471_628_800


@pytest.mark.parametrize("method", ["eagle", "eagle3"])
def test_an_unknown_head_is_taken_for_one_layer(method: str) -> None:
    geometry = drafted(LLAMA, model="a/b", method=method, num_speculative_tokens=3)
    assert geometry.kv_bytes_per_token == 135_168
    assert geometry.draft is not None
    assert geometry.draft.is_estimate


def test_an_unknown_draft_model_is_not_counted() -> None:
    geometry = drafted(LLAMA, model="a/b", num_speculative_tokens=3)
    assert geometry.kv_bytes_per_token == 131_072
    assert geometry.draft is not None
    assert not geometry.draft.source


@pytest.mark.parametrize("method", ["ngram", "ngram_gpu", "suffix", "medusa"])
def test_methods_without_layers(method: str) -> None:
    assert drafted(LLAMA, model="a/b", method=method, num_speculative_tokens=3).kv_bytes_per_token == 131_072


@pytest.mark.parametrize("model_type", ["gemma4_assistant", "medusa"])
def test_drafts_without_a_cache(model_type: str) -> None:
    observed = Observed(draft_config={"model_type": model_type} | HEAD)
    assert drafted(LLAMA, observed, model="a/b", num_speculative_tokens=3).kv_bytes_per_token == 131_072


def test_ranks_split_a_draft_as_they_split_the_model() -> None:
    observed = Observed(draft_config=HEAD | {"num_key_value_heads": 2})
    geometry = drafted(LLAMA, observed, ranks=4, model="a/b", method="eagle", num_speculative_tokens=1)
    # 2 heads on 4 ranks: one on each
    assert geometry.kv_bytes_per_token_per_rank == 131_072 // 4 + 2 * 128 * 2
    assert geometry.kv_bytes_per_token == 131_072 + 4 * 2 * 128 * 2


def test_a_latent_beside_a_drafts_heads_is_stored_by_every_rank() -> None:
    observed = Observed(draft_config=HEAD)
    geometry = drafted(
        "moonshotai/Kimi-K2-Instruct",
        observed,
        ranks=4,
        model="a/b",
        method="eagle3",
        num_speculative_tokens=1,
    )
    assert geometry.kv_bytes_per_token == 4 * 61 * 576 * 2 + 4096
    assert not geometry.mla


def test_an_unknown_head_beside_latents_is_taken_for_one_of_ordinary_attention() -> None:
    geometry = drafted(
        "moonshotai/Kimi-K2.5", ranks=8, model="a/b", method="eagle3", num_speculative_tokens=3
    )
    assert geometry.kv_bytes_per_token == 8 * 61 * 576 * 2 + 2 * 64 * 128 * 2
    assert not geometry.stored_once


class TestDescribedByTheResource:
    """`spec.model.draftGeometry`."""

    @staticmethod
    def _cost(draft_geometry: dict[str, Any], geometry: dict[str, Any] | None = None) -> int:
        one = resource(
            LLAMA,
            geometry=geometry,
            model_fields={"draftGeometry": draft_geometry},
            engine={"extraArgs": ["--spec-model", "a/b", "--spec-tokens", "3"]},
        )
        return resolve_geometry(one.spec, Observed()).kv_bytes_per_token

    def test_by_its_layers(self) -> None:
        assert self._cost({"layers": 2, "kvHeads": 4, "headDim": 64}) == 131_072 + 2 * 2 * 4 * 64 * 2

    def test_by_a_sum(self) -> None:
        assert self._cost({"kvBytesPerToken": 999}) == 131_072 + 999

    def test_beside_a_sum(self) -> None:
        layers = {"layers": 2, "kvHeads": 4, "headDim": 64}
        assert self._cost(layers, {"kvBytesPerToken": 1000}) == 1000 + 2 * 2 * 4 * 64 * 2


def test_a_draft_in_the_models_place_is_refused() -> None:
    config = {
        "speculators_model_type": "eagle3",
        "speculators_config": {"verifier": {"name_or_path": "a/Model"}},
        "transformer_layer_config": HEAD,
    }
    with pytest.raises(InvalidInputError, match=r"draft for a/Model.*--speculative-config"):
        drafted("a/b", Observed(model_config=config))


def test_a_draft_that_cannot_be_sized_is_refused_by_its_own_field() -> None:
    observed = Observed(draft_config=HEAD | {"num_hidden_layers": 0}, draft_config_source="head/config.json")
    with pytest.raises(InvalidInputError, match=r"head/config\.json.*spec\.model\.draftGeometry"):
        drafted(LLAMA, observed, model="a/b", num_speculative_tokens=1)
