"""Check unplanned-environment: variables of vLLM with which an engine keeps something else than planned."""

import pytest
from tests.cases.checks import PASS, REJECT, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.environment import unplanned_environment

MLA = "deepseek-ai/DeepSeek-V3"


@pytest.mark.parametrize("variable", [{"value": "1"}, {"valueFrom": {"fieldRef": {"fieldPath": "a"}}}])
def test_no_latents(variable: dict[str, object]) -> None:
    one = resource(MLA, engine={"env": [{"name": "VLLM_MLA_DISABLE", **variable}]})
    result = verdict(unplanned_environment, one)
    says(result, REJECT, "UnplannedVariable", "VLLM_MLA_DISABLE", "remove it")
    assert result.field == "spec.engine.env[VLLM_MLA_DISABLE]"


@pytest.mark.parametrize(("model", "value"), [(MLA, "0"), ("Qwen/Qwen3-32B", "1")])
def test_latents_as_planned(model: str, value: str) -> None:
    env = [{"name": "VLLM_MLA_DISABLE", "value": value}]
    one = resource(model, engine={"env": env})
    says(verdict(unplanned_environment, one), PASS, "Passed")
