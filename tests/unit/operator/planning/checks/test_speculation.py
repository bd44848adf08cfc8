"""Checks of speculative decoding."""

import json
from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.speculation import draft_known, speculation_supported
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.planning.verdict import Outcome

LLAMA, V3 = "meta-llama/Llama-3.1-8B", "deepseek-ai/DeepSeek-V3"
HEAD = {"num_hidden_layers": 1, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}


def drafting(  # a model's name, and fields of vLLM's configuration
    name: str,
    ranks: int = 1,
    weights: str = "",
    /,
    **config: Any,  # noqa: ANN401
) -> KVCacheTier:
    engine = {"extraArgs": ["-sc", json.dumps(config)] if config else [], "tensorParallelSize": ranks}
    return resource(name, engine=engine, model_fields={"weights": weights} if weights else {})


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"method": "mtp", "num_speculative_tokens": 3},
        {"method": "mtp", "model": V3, "num_speculative_tokens": 1},
        {"method": "ngram", "num_speculative_tokens": 4},
        {"method": "suffix"},
        {"method": "eagle3", "model": "a/b", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 1},
        {
            "method": "draft_model",
            "model": "a/b",
            "num_speculative_tokens": 3,
            "draft_tensor_parallel_size": 4,
        },
    ],
)
def test_vllm_starts(config: dict[str, Any]) -> None:
    says(verdict(speculation_supported, drafting(V3, 4, **config)), PASS, "Passed")


@pytest.mark.parametrize(
    ("model", "config", "word"),
    [
        (LLAMA, {"method": "mtp", "num_speculative_tokens": 1}, "no layers for multi-token prediction"),
        (V3, {"method": "mtp"}, "num_speculative_tokens"),
        (V3, {"method": "ngram"}, "num_speculative_tokens"),
        (V3, {"method": "eagle", "num_speculative_tokens": 3}, "needs a draft"),
        (V3, {"method": "medusa", "num_speculative_tokens": 3}, "needs a draft"),
        (V3, {"method": "extract_hidden_states", "num_speculative_tokens": 1}, "hidden states"),
        (
            V3,
            {"model": "a/b", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 1},
            "draft_tensor_parallel_size 1 must be 4",
        ),
        (
            V3,
            {"model": "a/b-eagle3", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 2},
            "draft_tensor_parallel_size 2 must be 1 or 4",
        ),
    ],
)
def test_vllm_does_not_start(model: str, config: dict[str, Any], word: str) -> None:
    result = verdict(speculation_supported, drafting(model, 4, **config))
    says(result, REJECT, "SpeculationNotSupported", word)
    assert result.field == "spec.engine.extraArgs[0]"


def test_each_fault_names_the_item_that_it_is_in() -> None:
    dotted = ["-sc.method=eagle", "-sc.num_speculative_tokens=3", "-sc.draft_tensor_parallel_size=2"]
    result = verdict(speculation_supported, resource(V3, engine={"extraArgs": ["--seed=1", *dotted]}))
    says(result, REJECT, "SpeculationNotSupported", "extraArgs[3]: draft_tensor_parallel_size 2")
    assert result.field == "spec.engine.extraArgs[1]"
    short = ["--spec-method", "eagle", "--spec-tokens", "3"]
    result = verdict(speculation_supported, resource(V3, engine={"extraArgs": short}))
    assert result.field == "spec.engine.extraArgs[0]", result.message


def test_tokens_are_a_multiple_of_the_predictors() -> None:
    two = {"model_type": "deepseek_v3", "num_nextn_predict_layers": 2, "kv_lora_rank": 512}
    observed = Observed(model_config=HEAD | two)
    three = drafting("a/b", method="mtp", num_speculative_tokens=3)
    says(
        verdict(speculation_supported, three, observed),
        REJECT,
        "SpeculationNotSupported",
        "multiple of the 2",
    )
    four = drafting("a/b", method="mtp", num_speculative_tokens=4)
    says(verdict(speculation_supported, four, observed), PASS, "Passed")


def test_a_method_that_the_newer_minor_has_no_more() -> None:
    one = drafting(LLAMA, model="a/b", method="medusa", num_speculative_tokens=3)
    assert verdict(speculation_supported, one).outcome is PASS  # the default image's minor has it
    result = verdict(speculation_supported, one, Observed(machine=Machine()))
    says(result, WARN, "MethodRemoved", "0.33")
    assert result.field == "spec.engine.extraArgs[0]"


@pytest.mark.parametrize(
    ("image", "outcome"), [("vllm/vllm-openai:v0.33.0", REJECT), ("vllm/vllm-openai:v0.32.0", PASS)]
)
@pytest.mark.parametrize("method", ["medusa", "mlp_speculator"])
def test_an_image_s_tag_tells_whether_it_has_a_method(image: str, outcome: Outcome, method: str) -> None:
    words = ["-sc", json.dumps({"model": "a/b", "method": method, "num_speculative_tokens": 3})]
    result = verdict(speculation_supported, resource(LLAMA, engine={"extraArgs": words, "image": image}))
    assert result.outcome is outcome, result.message


def test_a_draft_that_nothing_describes() -> None:
    one = drafting(LLAMA, model="a/small", num_speculative_tokens=3)
    says(verdict(draft_known, one), WARN, "DraftUnknown", "a/small", "spec.model.draftGeometry", "819,200")


def test_a_head_that_nothing_describes() -> None:
    one = drafting(LLAMA, model="a/b-eagle3", num_speculative_tokens=3)
    says(verdict(draft_known, one), WARN, "DraftEstimated", "one layer as the model's")


def test_what_a_draft_beside_latents_may_change_is_said() -> None:
    one = drafting(V3, 8, model="a/b-eagle3", num_speculative_tokens=3)
    words = ("heads of 128: beside ordinary attention", "costs the tier up to 7/8 of its tokens")
    says(verdict(draft_known, one), WARN, "DraftEstimated", *words)
    one = drafting(V3, 8, model="a/b-dflash", num_speculative_tokens=3)
    says(verdict(draft_known, one), WARN, "DraftUnknown", "up to 7/8 of its tokens")


def test_weights_that_nothing_tells() -> None:
    config = {"model": "a/b-eagle3", "num_speculative_tokens": 3}
    observed = Observed(draft_config=HEAD)
    says(verdict(draft_known, drafting(LLAMA, **config), observed), WARN, "DraftWeightsUnknown", "of both")
    says(verdict(draft_known, drafting(LLAMA, 1, "17Gi", **config), observed), PASS, "Passed", "1 layer")


def test_known_drafts() -> None:
    says(verdict(draft_known, drafting(LLAMA)), PASS, "Passed")
    says(
        verdict(draft_known, drafting(V3, method="mtp", num_speculative_tokens=1)), PASS, "Passed", "1 layer"
    )
    ngram = drafting(LLAMA, method="ngram", num_speculative_tokens=4)
    says(verdict(draft_known, ngram), PASS, "Passed", "no layers")


SMALL = HEAD | {"vocab_size": 32_000}


@pytest.mark.parametrize(("vocabulary", "outcome"), [(32_000, PASS), (31_000, REJECT)])
def test_a_draft_model_has_the_models_vocabulary(vocabulary: int, outcome: Outcome) -> None:
    one = drafting("a/b", 1, "17Gi", method="draft_model", model="a/small", num_speculative_tokens=3)
    observed = Observed(model_config=SMALL, draft_config=SMALL | {"vocab_size": vocabulary})
    result = verdict(speculation_supported, one, observed)
    assert result.outcome is outcome, result.message


@pytest.mark.parametrize(
    ("method", "name", "unknown"),
    [
        ("eagle", "LlamaForCausalLM", ""),
        ("eagle3", "LlamaForCausalLMEagle3", ""),
        ("eagle3", "LlamaForCausalLM", ""),
        ("eagle3", "PEagleDraftModel", "Eagle3PEagleDraftModel"),
        ("dflash", "DFlashDraftModel", ""),
        ("draft_model", "DominoForCausalLM", "DominoForCausalLM"),
    ],
)
def test_drafts_of_a_class_that_vllm_lacks(method: str, name: str, unknown: str) -> None:
    one = drafting(LLAMA, 1, "17Gi", method=method, model="a/b", num_speculative_tokens=3)
    draft = HEAD | {"architectures": [name], "vocab_size": 128_256}
    result = verdict(draft_known, one, Observed(draft_config=draft))
    if unknown:
        says(result, WARN, "DraftArchitectureUnknown", f"the draft's {unknown},")
    else:
        says(result, PASS, "Passed")
