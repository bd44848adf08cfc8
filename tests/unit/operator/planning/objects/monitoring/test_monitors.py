import pytest
from tests.cases.monitoring import monitoring
from tests.cases.planning import resource

from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

GKE = {"gateway": {"parentRef": {"name": "g"}, "provider": "gke"}}


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ({}, []),
        ({"serviceMonitor": True}, [("ServiceMonitor", "case-engine"), ("ServiceMonitor", "case-picker")]),
        ({"prometheusRule": True}, [("PrometheusRule", "case")]),
        ({"dashboard": True}, [("ConfigMap", "case-dashboard")]),
    ],
    ids=str,
)
def test_only_what_is_asked_for(asked: dict[str, bool], made: list[tuple[str, str]]) -> None:
    assert set(monitoring(asked)) == set(made)


def test_gke_has_a_prometheus_of_its_own() -> None:
    made = monitoring({"serviceMonitor": True}, router=GKE)
    assert set(made) == {("PodMonitoring", "case-engine"), ("PodMonitoring", "case-picker")}


@pytest.mark.parametrize("router", [{}, GKE], ids=["services", "pods"])
def test_a_monitor_selects_what_serves_the_metrics(router: dict[str, object]) -> None:
    one = resource(observability={"serviceMonitor": True}, router=router)
    built = build_objects(make_plan(one, Observed()))
    for monitor in (each for each in built if each["kind"] in {"ServiceMonitor", "PodMonitoring"}):
        [endpoint] = monitor["spec"]["endpoints"]
        selector = monitor["spec"]["selector"]["matchLabels"]
        services = [
            each
            for each in built
            if each["kind"] == "Service" and selector.items() <= each["metadata"]["labels"].items()
        ]
        pods = [
            each["spec"]["template"]
            for each in built
            if each["kind"] == "Deployment"
            and selector.items() <= each["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert len(services) == len(pods) == 1
        assert endpoint["port"] in {port["name"] for port in services[0]["spec"]["ports"]}
        assert endpoint["port"] in {
            port["name"] for container in pods[0]["spec"]["containers"] for port in container["ports"]
        }
        # the job that alerts and dashboard ask for: a ServiceMonitor's is the Service's name
        assert services[0]["metadata"]["name"] == monitor["metadata"]["name"]
