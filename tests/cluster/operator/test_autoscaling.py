"""Who scales the engines: the number is handed over, one autoscaler at a time, and what it says is told."""

from collections.abc import Callable, Iterator

import pytest
from kubernetes import client, watch
from tests.cluster.harness.api.custom_resources import install_definitions
from tests.cluster.harness.operator.operator import Operator
from tests.cluster.harness.programs.modules import published_crds
from tests.cluster.harness.stand_ins.http_server import engine_that_says
from tests.cluster.operator.world import DEADLINE_S, Document, World, resource
from tests.shared.waiting import eventually

ENGINE = ("apps/v1", "Deployment", "qwen-engine")
HPA = ("autoscaling/v2", "HorizontalPodAutoscaler", "qwen-engine")
SCALED_OBJECT = ("keda.sh/v1alpha1", "ScaledObject", "qwen-engine")
SCALED = {"minReplicas": 2, "maxReplicas": 8}
URL = "http://prometheus.monitoring:9090"
COST = "controller.kubernetes.io/pod-deletion-cost"


def test_the_number_is_handed_over_and_taken_back(world: World, operator: Operator) -> None:
    world.create(resource(replicas=4))
    world.until_settled()
    before = world.find(*ENGINE)
    assert before
    assert _holds_replicas(before)

    world.change(replicas=None, autoscaling=SCALED)
    numbers = _numbers_until(world, before, lambda live: not _holds_replicas(live))
    assert numbers == {4}
    assert world.until_object(*HPA, lambda live: live)

    # an autoscaler writes by the subresource; what kvtier changes then leaves its number alone
    _scale_deployment(world, 6)
    writes = operator.writes("Deployment")
    world.change(tiers={"cpu": {"capacity": "200Gi"}})
    changed = world.until_object(*ENGINE, lambda live: live and str(200 << 30) in str(live["spec"]))
    assert changed
    assert changed["spec"]["replicas"] == 6
    world.until_settled()
    assert operator.writes("Deployment") - writes <= 2, "one a Deployment"

    world.change(replicas=3, autoscaling=None)
    back = world.until_object(*ENGINE, lambda live: live and live["spec"]["replicas"] == 3)
    assert back
    assert _holds_replicas(back)
    assert world.until_object(*HPA, lambda live: live is None) is None


def test_of_no_engines_an_autoscaler_makes_none(world: World) -> None:
    world.create(resource(replicas=0))
    world.until_settled()
    world.change(replicas=None, autoscaling=SCALED)
    assert world.until_object(*ENGINE, lambda live: live and live["spec"]["replicas"] == 1)


def test_a_new_resource_has_an_autoscaler_and_what_it_says(world: World) -> None:
    world.create(resource(replicas=1, autoscaling=SCALED))
    said = world.until_condition("AutoscalerReady", reason="NotReported")["message"]
    assert "2 to 8 engine pods by 5 waiting requests an engine" in said
    missing = "no custom metrics API registered"
    _hpa_says(world, "False", "FailedGetPodsMetric", missing)
    said = world.until_condition("AutoscalerReady", reason="FailedGetPodsMetric")["message"]
    assert missing in said
    assert "vllm_num_requests_waiting" in said
    _hpa_says(world, "True", "ValidMetricFound")
    world.until_condition("AutoscalerReady", status="True")
    world.make_ready()
    world.until_condition("EnginesReady", status="True")


def test_what_somebody_changes_of_it_is_put_back(world: World) -> None:
    world.create(resource(replicas=1, autoscaling=SCALED))
    assert world.until_object(*HPA, lambda live: live)
    world.patch(*HPA, {"spec": {"maxReplicas": 99}})
    assert world.until_object(*HPA, lambda live: live and live["spec"]["maxReplicas"] == 8)


def test_keda_takes_over_when_it_comes_and_gives_back_when_it_goes(world: World) -> None:
    world.create(resource(replicas=1, autoscaling={**SCALED, "prometheusUrl": URL}))
    assert world.until_object(*HPA, lambda live: live)
    definitions = [definition for definition in published_crds() if definition["spec"]["group"] == "keda.sh"]
    with install_definitions(world.api, definitions):
        assert world.until_object(*HPA, lambda live: live is None) is None
        made = eventually(lambda: world.find(*SCALED_OBJECT) or {}, "a ScaledObject")
        assert made["spec"]["triggers"][0]["metadata"]["serverAddress"] == URL
        status = {"conditions": [{"type": "Ready", "status": "True", "reason": "ScaledObjectReady"}]}
        _custom(world).patch_namespaced_custom_object_status(
            "keda.sh", "v1alpha1", world.namespace, "scaledobjects", "qwen-engine", {"status": status}
        )
        said = world.until_condition("AutoscalerReady", status="True")["message"]
        assert said.startswith("ScaledObject qwen-engine keeps 2 to 8")
        live = world.find(*ENGINE)
        assert live
        assert live["spec"]["replicas"] == 1
    assert world.until_object(*HPA, lambda live: live)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"replicas": 2}, "spec.replicas: Invalid value: 2: with autoscaling the number of engine pods is"),
        ({"autoscaling": {"minReplicas": 9, "maxReplicas": 8}}, "spec.autoscaling.minReplicas"),
        ({"autoscaling": {**SCALED, "prometheusUrl": "prometheus:9090"}}, "spec.autoscaling.prometheusUrl"),
    ],
)
def test_what_contradicts_itself_is_refused_with_its_field(world: World, spec: Document, said: str) -> None:
    with pytest.raises(client.ApiException) as refused:
        world.create(resource(**{"replicas": 1, "autoscaling": SCALED, **spec}))
    assert said.partition(":")[0] in str(refused.value.body)


def test_kubectl_scale_says_whose_the_number_is(world: World) -> None:
    world.create(resource(replicas=1, autoscaling=SCALED))
    with pytest.raises(client.ApiException) as refused:
        world.scale(5)
    assert "the autoscaler's" in str(refused.value.body)


@pytest.fixture
def engine_port() -> Iterator[int]:
    """An engine with a tier of 1,000 tokens, of which it holds 340."""
    text = "vllm:kvtier_cpu_capacity_tokens 1000\nvllm:kvtier_cpu_cached_tokens 340\n"
    with engine_that_says(text) as port:
        yield port


def test_what_an_engine_holds_is_its_pods_cost(world: World, engine_port: int) -> None:
    world.create(resource(replicas=1, engine={"port": engine_port}, autoscaling=SCALED))
    world.until_settled()
    ready = {"type": "Ready", "status": "True"}
    status = {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}], "conditions": [ready]}
    world.add_pod("one", status)
    # one that somebody else made, with the engines' labels
    deployment = world.find(*ENGINE)
    assert deployment
    stranger = world.replica_set(deployment, owner_uid="11111111-2222-3333-4444-555555555555")
    world.add_pod("other", status, controllers=(stranger,))
    found = world.until_object("v1", "Pod", "one", lambda live: live and COST in _annotations(live))
    assert found
    assert _annotations(found)[COST] == "30"
    other = world.find("v1", "Pod", "other")
    assert other
    assert COST not in _annotations(other)


def _annotations(document: Document) -> dict[str, str]:
    return document["metadata"].get("annotations") or {}


def _holds_replicas(deployment: Document) -> bool:
    return any(
        (field["manager"], field["operation"]) == ("kvtier", "Apply")
        and "f:replicas" in field["fieldsV1"].get("f:spec", {})
        for field in deployment["metadata"]["managedFields"]
    )


def _numbers_until(world: World, before: Document, is_so: Callable[[Document], bool]) -> set[int]:
    """Every number of pods that the engines' Deployment has after a version, until something is so of it."""
    seen: set[int] = set()
    events = watch.Watch().stream(
        world.apps.list_namespaced_deployment,
        world.namespace,
        field_selector="metadata.name=qwen-engine",
        resource_version=before["metadata"]["resourceVersion"],
        timeout_seconds=DEADLINE_S,
    )
    for event in events:
        live = event["raw_object"]
        seen.add(live["spec"]["replicas"])
        if is_so(live):
            return seen
    pytest.fail(f"the Deployment did not become so within {DEADLINE_S} s; it had {seen}")


def _scale_deployment(world: World, replicas: int) -> None:
    """As Kubernetes' controller does for an autoscaler."""
    scale = world.apps.read_namespaced_deployment_scale("qwen-engine", world.namespace)
    scale.spec.replicas = replicas
    world.apps.replace_namespaced_deployment_scale(
        "qwen-engine", world.namespace, scale, field_manager="kube-controller-manager"
    )


def _hpa_says(world: World, status: str, reason: str, message: str = "") -> None:
    """What kube-controller-manager would write of it."""
    able = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": ""}
    said = {"type": "ScalingActive", "status": status, "reason": reason, "message": message}
    body = {"status": {"conditions": [able, said], "currentReplicas": 1, "desiredReplicas": 1}}
    client.AutoscalingV2Api(world.api).patch_namespaced_horizontal_pod_autoscaler_status(
        "qwen-engine", world.namespace, body
    )


def _custom(world: World) -> client.CustomObjectsApi:
    return client.CustomObjectsApi(world.api)
