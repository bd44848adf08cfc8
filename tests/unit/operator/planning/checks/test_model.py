"""Checks of the model's heads and length."""

import json
from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_common.tier import Tier
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.checks.model import (
    attention_heads,
    cache_shapes,
    model_length,
    overridden_length,
)
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.observed import EngineTokens, Observed

SIX_HEADS = {"num_hidden_layers": 4, "num_attention_heads": 12, "num_key_value_heads": 6, "head_dim": 64}


def test_heads_that_can_be_shared_out() -> None:
    says(verdict(attention_heads, resource(engine={"tensorParallelSize": 8})), PASS, "Passed")


def test_a_latent_needs_no_sharing_out() -> None:
    one = resource("deepseek-ai/DeepSeek-V3", engine={"tensorParallelSize": 16})
    says(verdict(attention_heads, one), PASS, "Passed")


def test_replicated_heads_are_said() -> None:
    result = verdict(attention_heads, resource(engine={"tensorParallelSize": 16}))
    says(result, WARN, "KVHeadsReplicated", "8 KV heads on 16 ranks", "2 times")


def test_not_every_model_has_its_heads_replicated() -> None:
    one = resource("openai/gpt-oss-120b", engine={"tensorParallelSize": 16})
    says(verdict(attention_heads, one), REJECT, "KVHeadsNotReplicated", "8 KV heads on 16 ranks", "8 ranks")


def test_query_heads_must_be_a_multiple() -> None:
    result = verdict(attention_heads, resource(engine={"tensorParallelSize": 3}))
    says(result, REJECT, "HeadsNotDivisible", "64 attention heads", "3 ranks", "1, 2, 4, 8, 16, 32, 64")
    assert result.field == "spec.engine.tensorParallelSize"


def test_kv_heads_must_divide_or_be_divided() -> None:
    one = resource("x/y", engine={"tensorParallelSize": 4})
    result = verdict(attention_heads, one, Observed(model_config=SIX_HEADS))
    says(result, REJECT, "KVHeadsNotDivisible", "6 KV heads and 4 ranks", "1, 2, 3, 6")


@pytest.mark.parametrize(
    ("model", "ranks", "heads"),
    [
        ("nvidia/Nemotron-H-56B-Base-8K", 16, "8 heads or groups"),  # of 8 groups
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 8, None),
        ("nvidia/Nemotron-H-56B-Base-8K", 8, None),
    ],
)
def test_states_are_shared_out_too(model: str, ranks: int, heads: str | None) -> None:
    result = verdict(attention_heads, resource(model, engine={"tensorParallelSize": ranks}))
    assert (result.reason == "StateNotDivisible") == (heads is not None)
    assert heads is None or heads in result.message


def test_a_state_that_cannot_be_shared_out_goes_before_copied_heads() -> None:
    config = SIX_HEADS | {"model_type": "falcon_h1", "num_attention_heads": 16, "num_key_value_heads": 2}
    config |= {"mamba_n_heads": 24, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 128}
    one, observed = resource(engine={"tensorParallelSize": 16}), Observed(model_config=config)
    says(verdict(attention_heads, one, observed), REJECT, "StateNotDivisible", "24 heads or groups")


QWEN = {"num_hidden_layers": 4, "num_attention_heads": 4, "hidden_size": 256, "max_position_embeddings": 4096}
ALLOWED = {"name": "VLLM_ALLOW_LONG_MAX_MODEL_LEN"}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}
SCALED = json.dumps({"rope_parameters": YARN, "max_position_embeddings": 131_072})


def scaled(**rope: Any) -> dict[str, Any]:  # noqa: ANN401 - as in config.json
    return QWEN | {"rope_scaling": rope}


def test_longer_than_the_model() -> None:
    result = verdict(model_length, resource(engine={"maxModelLen": 131_072}))
    says(result, REJECT, "LongerThanModel", "131,072", "40,960", "catalogue", "--hf-overrides")
    assert result.field == "spec.engine.maxModelLen"


@pytest.mark.parametrize(
    "engine",
    [
        {},
        {"maxModelLen": 40_960},
        {"maxModelLen": 131_072, "env": [ALLOWED | {"value": "1"}]},
        {"maxModelLen": 131_072, "env": [ALLOWED | {"value": " True"}]},
        {
            "maxModelLen": 131_072,
            "env": [ALLOWED | {"valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}],
        },
        {"maxModelLen": 131_072, "extraArgs": ["--hf-overrides", SCALED]},
    ],
    ids=str,
)
def test_vllm_starts(engine: dict[str, Any]) -> None:
    says(verdict(model_length, resource(engine=engine)), PASS, "Passed")


@pytest.mark.parametrize(
    "engine",
    [
        {"env": [ALLOWED | {"value": "0"}]},
        {"extraArgs": ["--hf-overrides", json.dumps({"rope_parameters": YARN})]},
        {"extraArgs": ["--hf-overrides.max_position_embeddings=65536"]},
    ],
    ids=str,
)
def test_what_makes_no_model_longer(engine: dict[str, Any]) -> None:
    one = resource(engine={"maxModelLen": 131_072, **engine})
    says(verdict(model_length, one), REJECT, "LongerThanModel")


@pytest.mark.parametrize(
    ("config", "most"),
    [
        (QWEN, 4096),
        (QWEN | {"model_max_length": 8192}, 8192),
        (scaled(type="linear", factor=2.0), 8192),
        (scaled(rope_type="yarn", factor=4.0, original_max_position_embeddings=1024), 4096),
        (scaled(rope_type="longrope") | {"original_max_position_embeddings": 1024}, 4096),
    ],
    ids=str,
)
def test_the_longest_that_vllm_takes(config: dict[str, Any], most: int) -> None:
    observed = Observed(model_config=config)
    says(verdict(model_length, resource(engine={"maxModelLen": most}), observed), PASS, "Passed")
    longer = resource(engine={"maxModelLen": most + 1})
    says(verdict(model_length, longer, observed), REJECT, "LongerThanModel", f"{most:,}")


def test_a_model_that_only_the_resource_describes_may_be_of_any_length() -> None:
    one = resource(geometry={"kvBytesPerToken": 1000}, engine={"maxModelLen": 10**7})
    says(verdict(model_length, one), PASS, "Passed")


YARN_ALONE = '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}'


def test_scaled_positions_make_sequences_longer() -> None:
    result = verdict(overridden_length, resource(engine={"extraArgs": ["--hf-overrides", YARN_ALONE]}))
    says(result, WARN, "SequenceNotKnown", "rope_parameters", "40,960 tokens")
    assert result.field == "spec.engine.maxModelLen"
    nested = ["--hf-overrides.text_config.rope_scaling.factor", "4"]
    says(verdict(overridden_length, resource(engine={"extraArgs": nested})), WARN, "SequenceNotKnown")


def test_a_length_that_is_given_is_known() -> None:
    given = {"extraArgs": ["--hf-overrides", YARN_ALONE], "maxModelLen": 131_072}
    says(verdict(overridden_length, resource(engine=given)), PASS, "Passed")
    others = {"extraArgs": ["--hf-overrides", '{"max_position_embeddings": 8192}']}
    says(verdict(overridden_length, resource(engine=others)), PASS, "Passed")


def test_a_sum_that_is_none() -> None:
    geometry = {"kvBytesPerToken": 4200}
    result = verdict(cache_shapes, resource("deepseek-ai/DeepSeek-V4-Flash", geometry=geometry))
    says(
        result,
        WARN,
        "CacheFarTooSmall",
        "187 to 195 KiB",
        "4.10 KiB is likely far too little",
        "all ranks together",
        "status.tiers.cpu.bytes",
    )
    assert result.field == "spec.model.geometry.kvBytesPerToken"
    says(verdict(cache_shapes, resource("own/model", geometry=geometry)), PASS, "Passed")
    measured = resource("deepseek-ai/DeepSeek-V4-Flash", geometry={"kvBytesPerToken": 200_000})
    for tokens, outcome in ((530_000, PASS), (25_000, WARN)):  # 100 GiB / 200,000 B are 536,870
        observed = Observed(engine=EngineTokens({Tier.CPU: tokens}))
        assert verdict(cache_shapes, measured, observed).outcome is outcome
    with pytest.raises(InvalidInputError, match=r"different shapes, .* many times what its model card has"):
        resolve_geometry(resource("deepseek-ai/DeepSeek-V4-Pro").spec, Observed())
