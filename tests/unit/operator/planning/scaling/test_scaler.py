"""Which autoscaler there is, and what follows for the other objects."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.api.resource import Metadata
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.objects.autoscaler.scaled_object import scaled_object
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.report.scaling import scaling_of
from kvtier_operator.planning.scaling.scaler import Scaler

URL = "http://prometheus.monitoring:9090"
SCALED = {"minReplicas": 2, "maxReplicas": 8}


def objects(*, has_keda: bool | None = None, **spec: Any) -> dict[tuple[str, str], dict[str, Any]]:  # noqa: ANN401 - as in YAML
    plan = make_plan(resource(**spec), Observed(serves_scaled_objects=has_keda))
    assert not plan.rejected
    return {(each["kind"], each["metadata"]["name"]): each for each in build_objects(plan)}


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
    assert not [each for each in objects(has_keda=True, replicas=3) if each[0] in set(Scaler)]
    assert scaling_of(make_plan(resource(replicas=3), Observed())) is None


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
