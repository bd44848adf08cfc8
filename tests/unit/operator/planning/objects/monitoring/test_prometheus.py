"""What Prometheus is told: what to scrape, and what someone should be told of."""

import pytest
from tests.cases.monitoring import alerts, expressions, monitoring
from tests.cases.planning import resource
from tests.cases.promql import metrics_of

from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

GKE = {"gateway": {"parentRef": {"name": "g"}, "provider": "gke"}}
BACKENDS = ("KVTier", "Native", "LMCache", "LMCacheMP")
ALWAYS = {"KVCacheTierPickerDown", "KVCacheTierHitRateCollapsed"}
ENGINES = {"KVCacheTierNoEngine", "KVCacheTierEnginesMissing"}
VLLM = {"KVCacheTierLoadsSlowerThanPrefill"}
KVTIER = {"KVCacheTierTransfersFailing", "KVCacheTierSmallerThanPlanned"}
DISK = {"KVCacheTierDiskDegraded", "KVCacheTierDiskCorrupt", "KVCacheTierDiskDoesNotPay"}
ON_DISK = {"tiers": {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}}
REMOTE = {"KVCacheTierRemoteUnreachable", "KVCacheTierRemoteCorrupt", "KVCacheTierRemoteDoesNotPay"}
IN_A_STORE = {"tiers": {"remote": {"capacity": "1Ti", "url": "redis://cache:6379"}}}


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
    for monitor in (
        document for document in built if document["kind"] in {"ServiceMonitor", "PodMonitoring"}
    ):
        [endpoint] = monitor["spec"]["endpoints"]
        selector = monitor["spec"]["selector"]["matchLabels"]
        services = [
            document
            for document in built
            if document["kind"] == "Service" and selector.items() <= document["metadata"]["labels"].items()
        ]
        pods = [
            document["spec"]["template"]
            for document in built
            if document["kind"] == "Deployment"
            and selector.items() <= document["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert len(services) == len(pods) == 1
        assert endpoint["port"] in {port["name"] for port in services[0]["spec"]["ports"]}
        assert endpoint["port"] in {
            port["name"] for container in pods[0]["spec"]["containers"] for port in container["ports"]
        }
        # the job that alerts and dashboard ask for: a ServiceMonitor's is the Service's name
        assert services[0]["metadata"]["name"] == monitor["metadata"]["name"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("flavor", ["llm-d", "gaie", "builtin"])
def test_prometheus_takes_every_expression(backend: str, flavor: str) -> None:
    for expression in expressions(backend=backend, router={"flavor": flavor}, **ON_DISK):
        assert metrics_of(expression)


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("KVTier", ALWAYS | ENGINES | VLLM | KVTIER),
        ("Native", ALWAYS | ENGINES | VLLM),
        ("LMCache", ALWAYS | ENGINES),
        ("LMCacheMP", ALWAYS | ENGINES),
    ],
)
def test_alerts_are_those_that_the_backend_has_metrics_for(backend: str, expected: set[str]) -> None:
    assert set(alerts(backend=backend)) == expected


@pytest.mark.parametrize(("backend", "more"), [("KVTier", DISK), ("Native", set()), ("LMCache", set())])
def test_a_disk_is_watched_where_the_backend_tells_of_it(backend: str, more: set[str]) -> None:
    assert set(alerts(backend=backend, **ON_DISK)) - set(alerts(backend=backend)) == more


def test_a_disk_that_is_bad_is_told_of_by_its_pod() -> None:
    assert set(alerts(**IN_A_STORE)) - set(alerts()) == REMOTE
    found = alerts(**ON_DISK)
    for name in DISK:
        assert "by (pod)" in found[name]["expr"]
        assert "{{ $labels.pod }}" in found[name]["annotations"]["description"]
    assert metrics_of(found["KVCacheTierDiskDegraded"]["expr"]) == {"vllm:kvtier_disk_degraded"}
    assert metrics_of(found["KVCacheTierDiskCorrupt"]["expr"]) == {"vllm:kvtier_disk_corrupt_chunks_total"}


def test_a_resource_without_engines_misses_none() -> None:
    assert not ENGINES & set(alerts(replicas=0))


def test_alerts_know_the_plan() -> None:
    found = alerts(replicas=3)
    assert found["KVCacheTierEnginesMissing"]["expr"].endswith("== 1) < 3")
    assert (
        found["KVCacheTierSmallerThanPlanned"]["expr"].partition(" and ")[0].endswith("< 0.95 * 107374182400")
    )


def test_alerts_name_the_resource_and_say_what_to_look_at() -> None:
    for alert in alerts().values():
        assert alert["labels"]["kvcachetier"] == "case"
        assert alert["labels"]["severity"] in {"warning", "critical"}
        assert alert["annotations"]["summary"].startswith("KVCacheTier default/case: ")
        assert alert["annotations"]["description"].endswith(".")
