"""What may be a secret stands in no report of a plan."""

import json

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.report.explain import explain
from kvtier_operator.planning.report.fields import HIDDEN, report


def reports(**engine: object) -> tuple[str, str]:
    plan = make_plan(resource(engine=engine), Observed())
    return explain(plan), json.dumps(report(plan))


def test_a_variable_s_value_stays_in_the_resource() -> None:
    variables = [{"name": "HF_TOKEN", "value": "hf_secret"}, {"name": "EMPTY"}]
    text, data = reports(env=variables)
    assert "hf_secret" not in text + data
    assert "\n  HF_TOKEN=(not shown)\n" in text
    shown = json.loads(data)["engine"]["env"]
    assert shown["HF_TOKEN"] == shown["EMPTY"] == HIDDEN
    assert shown["PYTHONHASHSEED"] == "0"


@pytest.mark.parametrize(
    "given",
    [
        ["--api-key", "hunter2"],
        ["--api-key", "hunter2", "hunter2"],
        ["--api-key=hunter2"],
        ["--api_key=hunter2"],
        ["--api-k", "hunter2"],
        ["--api-key.a", "hunter2"],
        ["-O--api-key.a=hunter2", "3"],
        ["--hf-token", "hunter2"],
        ["--hf_tok=hunter2"],
    ],
    ids=" ".join,
)
def test_a_key_among_the_arguments_is_not_shown(given: list[str]) -> None:
    text, data = reports(extraArgs=[*given, "--seed", "17"])
    assert "hunter2" not in text + data
    assert "(not shown)" in text
    assert "--seed 17" in text
    assert json.loads(data)["engine"]["args"][-2:] == ["--seed", "17"]


def test_other_arguments_are_shown() -> None:
    text, data = reports(extraArgs=["--tokenizer", "other", "--api-server-count=1"])
    assert "--tokenizer other --api-server-count=1" in text
    assert "(not shown)" not in text + data
