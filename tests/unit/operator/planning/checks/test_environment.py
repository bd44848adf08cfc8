"""Checks of environment variables."""

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.environment import (
    expandable_segments,
    known_environment,
    unplanned_environment,
)
from kvtier_operator.planning.verdict import Outcome

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


def one(name: str, value: str, *arguments: str) -> KVCacheTier:
    return resource(engine={"env": [{"name": name, "value": value}], "extraArgs": [*arguments]})


@pytest.mark.parametrize("name", ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"])
@pytest.mark.parametrize(
    "value",
    [
        "expandable_segments:True",
        "max_split_size_mb:512, expandable_segments : true",
        "expandable_segments:1",
    ],
)
def test_segments_that_may_be_mapped_elsewhere(name: str, value: str) -> None:
    result = verdict(expandable_segments, one(name, value))
    says(result, REJECT, "ExpandableSegments", name, "--enable-cumem-allocator")
    assert result.field == f"spec.engine.env[{name}]"


@pytest.mark.parametrize(
    "value", ["", "expandable_segments:False", "max_split_size_mb:512", "expandable_segments"]
)
def test_others_are_well(value: str) -> None:
    says(verdict(expandable_segments, one("PYTORCH_CUDA_ALLOC_CONF", value)), PASS, "Passed")


@pytest.mark.parametrize("argument", ["--enable-sleep-mode", "--enable_cumem", "--enable-cumem-allocator"])
def test_a_cache_with_a_pool_of_its_own(argument: str) -> None:
    given = one("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", argument)
    says(verdict(expandable_segments, given), PASS, "Passed")


def test_a_variable_from_elsewhere_is_not_known() -> None:
    source = {"configMapKeyRef": {"name": "torch", "key": "conf"}}
    given = resource(engine={"env": [{"name": "PYTORCH_CUDA_ALLOC_CONF", "valueFrom": source}]})
    says(verdict(expandable_segments, given), PASS, "Passed")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("VLLM_ATTENTION_BACKEND", "set --attention-backend in spec.engine.extraArgs"),
        ("VLLM_PREFIX_CACHE_RETENTION_INTERVAL", "set --prefix-cache-retention-interval in"),
        ("VLLM_USE_V1", "remove it"),
        ("VLLM_LOGING_LEVEL", "set VLLM_LOGGING_LEVEL, if that is meant"),
        ("VLLM_OF_A_FORK", "remove it"),
    ],
)
def test_variables_that_no_vllm_reads(name: str, advice: str) -> None:
    result = verdict(known_environment, one(name, "1"))
    says(result, WARN, "VariableNotKnown", name, advice)
    assert result.field == f"spec.engine.env[{name}]"


def test_every_variable_that_no_vllm_reads_has_its_path() -> None:
    env = [{"name": name, "value": "1"} for name in ("VLLM_USE_V1", "VLLM_RPC_TIMEOUT")]
    result = verdict(known_environment, resource(engine={"env": env}))
    says(
        result,
        WARN,
        "VariableNotKnown",
        "vLLM 0.32 does not read VLLM_USE_V1: remove it; spec.engine.env[VLLM_RPC_",
    )


@pytest.mark.parametrize("name", ["VLLM_LOGGING_LEVEL", "NCCL_DEBUG", "vllm_use_v1"])
def test_variables_that_are_read_or_are_not_vllms(name: str) -> None:
    says(verdict(known_environment, one(name, "1")), PASS, "Passed")


def test_a_variable_of_one_minor_alone_is_asked_of_the_images() -> None:
    name, image = "VLLM_USE_RAY_COMPILED_DAG_CHANNEL_TYPE", "vllm/vllm-openai:v0.{}.0"
    for minor, outcome in ((32, PASS), (33, WARN)):
        engine = {"env": [{"name": name, "value": "1"}], "image": image.format(minor)}
        assert verdict(known_environment, resource(engine=engine)).outcome is outcome


@pytest.mark.parametrize(("value", "outcome"), [("True", WARN), ("1", WARN), ("0", PASS)])
def test_adapters_that_are_loaded_later(value: str, outcome: Outcome) -> None:
    given = one("VLLM_ALLOW_RUNTIME_LORA_UPDATING", value)
    reason = "AdaptersMayBeReplaced" if outcome is WARN else "Passed"
    says(verdict(unplanned_environment, given), outcome, reason)
