import json
from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.model import model_length
from kvtier_operator.planning.observed import Observed

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
