"""The queries are PromQL over metrics that engines have, and the guide's adapter asks the same."""

from typing import Any

import promql_parser
import pytest
from tests.unit.docs.pages import DOCS, documents

from kvtier_operator.api.spec.engine import Autoscaling, ScalingTarget
from kvtier_operator.planning.scaling.metric import scaling_metric
from kvtier_operator.planning.scaling.query import pod_query, total_query

ENGINE = 'namespace="llm",job="qwen-engine"'
PAGE = DOCS / "user-guide" / "run" / "autoscaling.md"


@pytest.mark.parametrize("tells_fill", [True, False])
@pytest.mark.parametrize("target", ScalingTarget)
def test_they_are_promql(target: ScalingTarget, *, tells_fill: bool) -> None:
    each = pod_query(target, ENGINE, tells_fill=tells_fill)
    promql_parser.parse(each)
    promql_parser.parse(total_query(target, ENGINE, tells_fill=tells_fill))


def test_fill_is_asked_for_where_it_is_told() -> None:
    asked = pod_query(ScalingTarget.HIT_RATE, ENGINE, tells_fill=True)
    for tier in ("cpu", "disk"):
        assert f"vllm:kvtier_{tier}_used_bytes" in asked
        assert f"vllm:kvtier_{tier}_capacity_bytes" in asked
    assert "kvtier_" not in pod_query(ScalingTarget.HIT_RATE, ENGINE, tells_fill=False)


@pytest.mark.parametrize("target", ScalingTarget)
def test_the_guide_has_an_adapters_rule_for_each_target(target: ScalingTarget) -> None:
    name = scaling_metric(Autoscaling(max_replicas=2, target=target)).pod_metric
    [rule] = [each for each in _rules() if each["name"]["as"] == name]
    asked = pod_query(target, "<<.LabelMatchers>>", tells_fill=True).replace("(pod)", "(<<.GroupBy>>)")
    assert " ".join(rule["metricsQuery"].split()) == asked


def _rules() -> list[dict[str, Any]]:
    return [rule for document in documents(PAGE) for rule in document.get("rules", ())]
