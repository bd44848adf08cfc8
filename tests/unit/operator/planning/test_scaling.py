"""What an autoscaler compares, which one a resource gets, and how fast engines come and go."""

from dataclasses import replace
from typing import Any

import promql_parser
import pytest
from tests.cases.planning import resource
from tests.unit.docs.pages import DOCS, documents

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.api.resource import Metadata
from kvtier_operator.api.spec.engine import Autoscaling, ScalingTarget
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.objects.autoscaler import scaled_object, scaling_behavior
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.scaling import Scaler, pod_query, scaling_metric, scaling_of, total_query

URL = "http://prometheus.monitoring:9090"
SCALED = {"minReplicas": 2, "maxReplicas": 8}
ENGINE = 'namespace="llm",job="qwen-engine"'
PAGE = DOCS / "user-guide" / "run" / "autoscaling.md"


def objects(*, has_keda: bool | None = None, **spec: Any) -> dict[tuple[str, str], dict[str, Any]]:  # noqa: ANN401 - as in YAML
    plan = make_plan(resource(**spec), Observed(serves_scaled_objects=has_keda))
    assert not plan.rejected
    return {(document["kind"], document["metadata"]["name"]): document for document in build_objects(plan)}


@pytest.mark.parametrize(
    ("url", "has_keda", "kind"),
    [
        ({}, True, Scaler.POD_AUTOSCALER),
        ({}, None, Scaler.POD_AUTOSCALER),
        ({"prometheusUrl": URL}, False, Scaler.POD_AUTOSCALER),
        ({"prometheusUrl": URL}, True, Scaler.SCALED_OBJECT),
        ({"prometheusUrl": URL}, None, Scaler.SCALED_OBJECT),
    ],
)
def test_one_of_them(url: dict[str, str], kind: Scaler, *, has_keda: bool | None) -> None:
    found = objects(has_keda=has_keda, autoscaling={**SCALED, **url})
    scalers = [each for each in found if each[0] in set(Scaler)]
    assert scalers == [(kind, "case-engine")]


def test_none_where_the_resource_says_how_many() -> None:
    assert not [document for document in objects(has_keda=True, replicas=3) if document[0] in set(Scaler)]
    assert scaling_of(resource(replicas=3), None) is None


@pytest.mark.parametrize("url", [{}, {"prometheusUrl": URL}])
def test_the_deployment_has_no_number_of_its_own(url: dict[str, str]) -> None:
    found = objects(autoscaling={**SCALED, **url})
    deployment = found["Deployment", "case-engine"]
    assert "replicas" not in deployment["spec"]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "case-engine"}
    [scaler] = [each for (kind, _), each in found.items() if kind in set(Scaler)]
    assert scaler["spec"]["scaleTargetRef"] == target


def test_bounds_and_thresholds() -> None:
    by_pods = objects(autoscaling={**SCALED, "target": "kvCacheUtilization"})
    spec = by_pods["HorizontalPodAutoscaler", "case-engine"]["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 8)
    [metric] = spec["metrics"]
    assert metric["pods"]["target"] == {"type": "AverageValue", "averageValue": "800m"}
    by_query = objects(autoscaling={**SCALED, "prometheusUrl": URL, "targetValue": 3})
    spec = by_query["ScaledObject", "case-engine"]["spec"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (2, 8)
    [trigger] = spec["triggers"]
    assert (trigger["metadata"]["serverAddress"], trigger["metadata"]["threshold"]) == (URL, "3")
    assert 'namespace="default",job="case-engine"' in trigger["metadata"]["query"]


def test_keda_puts_its_path_behind_the_address() -> None:
    by_query = objects(autoscaling={**SCALED, "prometheusUrl": f"{URL}/prefix/"})
    [trigger] = by_query["ScaledObject", "case-engine"]["spec"]["triggers"]
    assert trigger["metadata"]["serverAddress"] == f"{URL}/prefix"


def test_a_server_that_does_not_answer_everybody() -> None:
    access = {
        "authenticationRef": {"name": "thanos", "kind": "ClusterTriggerAuthentication"},
        "authModes": ["tls", "bearer"],
        "namespace": "llm",
        "headers": [{"name": "X-Scope-OrgID", "value": "a|b"}, {"name": "X-Client", "value": "keda"}],
    }
    one = objects(autoscaling={**SCALED, "prometheusUrl": URL, "prometheus": access})
    [trigger] = one["ScaledObject", "case-engine"]["spec"]["triggers"]
    assert trigger["authenticationRef"] == access["authenticationRef"]
    asked = {name: trigger["metadata"][name] for name in ("authModes", "namespace", "customHeaders")}
    assert asked == {
        "authModes": "tls,bearer",
        "namespace": "llm",
        "customHeaders": "X-Scope-OrgID=a|b,X-Client=keda",
    }


def test_what_keda_makes_has_a_name_that_is_a_label() -> None:
    one = make_plan(resource(autoscaling={**SCALED, "prometheusUrl": URL}), Observed())
    longest = replace(one, resource=one.resource.model_copy(update={"metadata": Metadata(name="a" * 48)}))
    built = scaled_object(longest)
    assert built
    name = built["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["name"]
    assert len(name) <= 63


@pytest.mark.parametrize(("most", "has_budget"), [(1, False), (2, True)])
def test_a_disruption_budget_where_there_may_be_several(most: int, *, has_budget: bool) -> None:
    found = objects(autoscaling={"maxReplicas": most})
    assert (("PodDisruptionBudget", "case-engine") in found) is has_budget


def test_the_picker_has_memory_for_as_many_as_there_may_be() -> None:
    def memory(**spec: Any) -> object:  # noqa: ANN401 - as in YAML
        picker = objects(**spec)["Deployment", "case-picker"]["spec"]["template"]["spec"]
        return picker["containers"][0]["resources"]

    assert memory(autoscaling={"maxReplicas": 32}) == memory(replicas=32)
    assert memory(autoscaling={"maxReplicas": 32}) != memory(replicas=2)


@pytest.mark.parametrize(
    ("target", "value", "number", "quantity", "goal"),
    [
        ("queue", None, "5", "5", "5 waiting requests an engine"),
        ("queue", 1, "1", "1", "1 waiting request an engine"),
        ("kvCacheUtilization", None, "0.8", "800m", "80% of the device's cache in use"),
        ("kvCacheUtilization", 75, "0.75", "750m", "75% of the device's cache in use"),
        ("hitRate", None, "0.5", "500m", "50% of prompt tokens found in a tier"),
        ("hitRate", 99, "0.01", "10m", "99% of prompt tokens found in a tier"),
    ],
)
def test_values(target: str, value: int | None, number: str, quantity: str, goal: str) -> None:
    found = scaling_metric(Autoscaling(max_replicas=4, target=ScalingTarget(target), target_value=value))
    assert (found.threshold_number, found.threshold_quantity, found.goal) == (number, quantity, goal)
    assert float(parse_quantity(quantity)) == float(number)


def test_each_target_has_a_metric_of_its_own() -> None:
    names = {
        scaling_metric(Autoscaling(max_replicas=4, target=target)).pod_metric for target in ScalingTarget
    }
    assert len(names) == len(ScalingTarget)


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
    [rule] = [rule for rule in _rules() if rule["name"]["as"] == name]
    asked = pod_query(target, "<<.LabelMatchers>>", tells_fill=True).replace("(pod)", "(<<.GroupBy>>)")
    assert " ".join(rule["metricsQuery"].split()) == asked


def _rules() -> list[dict[str, Any]]:
    return [rule for document in documents(PAGE) for rule in document.get("rules", ())]


@pytest.mark.parametrize("target", ScalingTarget)
@pytest.mark.parametrize("seconds", [0, 90, 100_000])
def test_what_kubernetes_takes(target: ScalingTarget, seconds: int) -> None:
    found = scaling_behavior(Autoscaling(max_replicas=4, target=target), start_s=seconds, grace_s=seconds)
    for way in ("scaleUp", "scaleDown"):
        assert 0 <= found[way]["stabilizationWindowSeconds"] <= 3600
        assert all(0 < policy["periodSeconds"] <= 1800 for policy in found[way]["policies"])


def test_engines_go_one_at_a_time_when_the_one_before_has_drained() -> None:
    wanted = Autoscaling(max_replicas=4, scale_down_stabilization_seconds=900)
    found = scaling_behavior(wanted, start_s=60, grace_s=620)["scaleDown"]
    assert found["stabilizationWindowSeconds"] == 900
    assert found["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 620}]


def test_by_hits_they_come_one_at_a_time() -> None:
    wanted = Autoscaling(max_replicas=4, target=ScalingTarget.HIT_RATE)
    found = scaling_behavior(wanted, start_s=300, grace_s=60)["scaleUp"]
    assert found["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 900}]
