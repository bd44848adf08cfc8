import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.arguments import unplanned_arguments
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

PLAIN, WINDOWS, STATES = "Qwen/Qwen3-32B", "openai/gpt-oss-120b", "Qwen/Qwen3-Next-80B-A3B-Instruct"


def one(*arguments: str, model: str = PLAIN) -> KVCacheTier:
    return resource(model, engine={"extraArgs": [*arguments]})


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--headless"], ["--nnodes", "2"], ["-n2"], ["-n", "2"], ["-r=1"], ["--node_rank=1"]),
        *(["--uds", "/s"], ["--grpc"], ["--host", "127.0.0.1"], ["--host=10.0.0.1"], ["--mm-encoder-only"]),
        *(["--hf-config-path", "other/model"], ["--kv-cache-dtype-skip-layers", "0", "1"]),
        *(["--prefix-match-unit", "32"], ["--use-replayssm"]),
        ["--pooler-config", '{"seq_pooling_type": "MEAN"}', "--runner", "pooling"],
        *(["--pooler-config", '{"pooling_type": "CLS"}'], ["--pooler-config.tok_pooling_type=STEP"]),
    ],
    ids=str,
)
def test_engines_that_are_not_what_is_planned(arguments: list[str]) -> None:
    result = verdict(unplanned_arguments, one("--seed", "1", *arguments))
    says(result, REJECT, "UnplannedArgument", "remove it")
    assert result.field == "spec.engine.extraArgs[2]"


def test_all_of_them_are_told_at_once() -> None:
    result = verdict(unplanned_arguments, one("--headless", "--uds=/s"))
    says(result, REJECT, "UnplannedArgument", "--headless", "spec.engine.extraArgs[1]: --uds")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--host", "0.0.0.0"],  # noqa: S104 - read, not bound
        ["--host=::"],
        ["--no-enable-log-requests"],
        ["--grpc-port", "50051"],
        ["--data-parallel-backend", "mp"],
        ["--no-data-parallel-external-lb"],
        ["--disable-sliding-window"],
        ["--mamba-cache-mode=all"],
        ["--pooler-config", '{"seq_pooling_type": "LAST"}', "--runner", "pooling"],
        ["--pooler-config", '{"seq_pooling_type": "MEAN"}', "--runner", "generate"],
    ],
    ids=str,
)
def test_others_pass(arguments: list[str]) -> None:
    says(verdict(unplanned_arguments, one(*arguments)), PASS, "Passed")


def test_what_a_model_has_not_cannot_be_changed() -> None:
    says(
        verdict(unplanned_arguments, one("--disable-sliding-window", model=WINDOWS)),
        REJECT,
        "UnplannedArgument",
    )
    for argument in ("--mamba-cache-mode=all", "--mamba-block-size=16"):
        says(verdict(unplanned_arguments, one(argument, model=STATES)), REJECT, "UnplannedArgument")
    says(verdict(unplanned_arguments, one("--prefix-match-unit=16", model=WINDOWS)), PASS, "Passed")


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("--hf-config-path", "remove it, or set spec.model.geometry"),
        ("--kv-cache-dtype-skip-layers", "remove it, or give the sum in spec.model.geometry.kvBytesPerToken"),
        ("--uds", "remove it"),
    ],
)
def test_advice_ends_with_every_way_out(option: str, advice: str) -> None:
    plan = make_plan(one(option, "0"), Observed())
    [said] = [check.message for check in plan.checks if option in check.message]
    assert said.endswith(advice), "refused once, and with this"


def test_a_geometry_that_is_given_stands() -> None:
    given = {"kvBytesPerToken": 1000}
    for argument in ("--hf-config-path=other/model", "--kv-cache-dtype-skip-layers=0"):
        known = resource(geometry=given, engine={"extraArgs": [argument]})
        says(verdict(unplanned_arguments, known), PASS, "Passed")


@pytest.mark.parametrize("arguments", [["--disable-log-stats"], ["--cpu-offload-gb", "10"]])
def test_what_the_plan_leaves_out(arguments: list[str]) -> None:
    says(verdict(unplanned_arguments, one(*arguments)), WARN, "UnplannedArgument", arguments[0])
