"""What the cluster around a resource does: kinds that come, namespaces that go, quotas, nodes, restarts."""

from pathlib import Path

import pytest
from kubernetes import client
from tests.cases.routes import condition
from tests.cluster.harness.account import Account
from tests.cluster.harness.custom_resources import installed
from tests.cluster.harness.modules import published_crds
from tests.cluster.harness.operator import Operator, running_operator
from tests.cluster.harness.providers.provider import Cluster
from tests.cluster.operator.world import POOL, ROUTE, World, create_namespace, resource
from tests.waiting import eventually

_ROUTES = {"inferencepools.inference.networking.k8s.io", "httproutes.gateway.networking.k8s.io"}


def test_a_restart_writes_nothing(server: Cluster, account: Account, tmp_path: Path) -> None:
    with server.client() as api:
        world = World(api, create_namespace(api, "restarted"))
        options = {"kubeconfig": account.kubeconfig(), "namespaces": (world.namespace,)}
        with running_operator(**options, log=tmp_path / "first.log") as first:  # type: ignore[arg-type]
            world.create(resource())
            world.create(resource("rejected", engine={"tensorParallelSize": 3}))
            world.until_settled("rejected")
            world.until_settled()
            world.make_ready()
            world.until_condition("EnginesReady", status="True")
            assert first.writes() > 10
        with running_operator(**options, log=tmp_path / "second.log") as second:  # type: ignore[arg-type]
            eventually(lambda: second.metrics().get("kvtier_reconciles_total", 0) >= 2, "reconciliations")
            world.create(resource("new"))
            world.until_settled("new")
            new_objects = len(world.children("new"))
            told = len([each for each in world.events() if each[0] == "Warning"])
            assert second.writes() <= new_objects + 1 + told
            assert second.writes("Deployment") == 2


def test_kinds_that_are_installed_later(world: World) -> None:
    world.create(resource(router={"gateway": {"parentRef": {"name": "gateway"}}}))
    world.until_settled()
    world.make_ready()
    said = world.until_condition("RouterReady", reason="CRDsMissing")["message"]
    assert all(name in said for name in _ROUTES)
    definitions = (each for each in published_crds() if each["metadata"]["name"] in _ROUTES)
    with installed(world.api, definitions):
        world.until_condition("RouterReady", reason="RouteUnanswered")
        world.gateway_says(condition())
        world.until_condition("Ready", status="True")
        assert world.find(*POOL, "qwen")
        assert world.find(*ROUTE, "qwen")
    world.until_condition("RouterReady", reason="CRDsMissing")


def test_a_namespace_that_is_being_deleted(world: World, operator: Operator) -> None:
    world.create(resource())
    world.until_settled()
    world.core.delete_namespace(world.namespace)
    world.core.delete_namespaced_service("qwen-engine", world.namespace)
    said = world.until_condition("EnginesReady", reason="NamespaceTerminating")["message"]
    assert world.namespace in said
    failed = operator.metrics().get("kvtier_api_errors_total", 0)
    world.core.delete_namespaced_service("qwen-picker", world.namespace)
    world.core.delete_namespaced_config_map("qwen-picker", world.namespace)
    other = World(world.api, create_namespace(world.api, f"{world.namespace}-after"))
    other.create(resource())
    other.until_settled()  # by now the deletions were seen too
    assert operator.metrics().get("kvtier_api_errors_total", 0) == failed


def test_a_quota_that_leaves_no_room_for_objects_and_is_raised(world: World) -> None:
    hard = {"hard": {"count/services": "1"}}
    quota = {"metadata": {"name": "team"}, "spec": hard}
    world.core.create_namespaced_resource_quota(world.namespace, quota)
    world.core.patch_namespaced_resource_quota_status(
        "team", world.namespace, {"status": {**hard, "used": {"count/services": "1"}}}
    )
    world.create(resource())
    said = world.until(lambda each: "exceeded quota" in str(each.get("status")), "word of the quota")[
        "status"
    ]
    assert "count/services" in str(said)
    assert ("Deployment", "qwen-engine") not in world.children()
    world.core.delete_namespaced_resource_quota("team", world.namespace)
    world.until_object("apps/v1", "Deployment", "qwen-engine", lambda live: live)


def test_bounds_that_come_and_go(world: World) -> None:
    world.create(resource(engine={"resources": {"limits": {"cpu": "8"}}}))
    world.until_condition("BudgetFits", status="True")
    item = {"type": "Container", "max": {"cpu": "250m"}}
    limits = {"metadata": {"name": "team"}, "spec": {"limits": [item]}}
    world.core.create_namespaced_limit_range(world.namespace, limits)
    said = world.until_condition("BudgetFits", reason="LimitRangeRefuses")["message"]
    assert "container picker of qwen-picker requests 500m cpu, at most 250m allowed" in said
    assert ("Deployment", "qwen-picker") in world.children()  # it holds nothing up
    world.core.delete_namespaced_limit_range("team", world.namespace)
    world.until_condition("BudgetFits", status="True")
    quota = {"metadata": {"name": "team"}, "spec": {"hard": {"requests.cpu": "16"}}}
    world.core.create_namespaced_resource_quota(world.namespace, quota)
    said = world.until_condition("BudgetFits", reason="QuotaExceeded")["message"]
    assert "allows 16 of requests.cpu; 16500m needed" in said
    world.core.patch_namespaced_resource_quota(
        "team", world.namespace, {"spec": {"hard": {"requests.cpu": "16500m"}}}
    )
    world.until_condition("BudgetFits", status="True")


def test_a_storage_class_that_is_missing_and_made(world: World) -> None:
    disk = {"capacity": "1Ti", "volume": {"ephemeral": {"storageClassName": world.namespace}}}
    world.create(resource(tiers={"cpu": {"capacity": "100Gi"}, "disk": disk}))
    said = world.until_condition("BudgetFits", reason="StorageClassMissing")["message"]
    assert f"the cluster has no storage class {world.namespace}" in said
    storage = client.StorageV1Api(world.api)
    storage.create_storage_class(
        {"metadata": {"name": world.namespace}, "provisioner": "kubernetes.io/no-provisioner"}
    )
    try:
        world.until_condition("BudgetFits", status="True")
    finally:
        storage.delete_storage_class(world.namespace)
    world.until_condition("BudgetFits", reason="StorageClassMissing")


@pytest.mark.parametrize("gpus", [2])
def test_nodes_that_come_and_go(world: World, gpus: int) -> None:
    world.create(
        resource(replicas=1, engine={"tensorParallelSize": gpus, "nodeSelector": {"pool": world.namespace}})
    )
    world.until_condition("NodesFit", status="False")
    allocatable = {
        "cpu": "64",
        "memory": "1Ti",
        "pods": "110",
        "nvidia.com/gpu": str(gpus),
        "ephemeral-storage": "1Ti",
    }
    node = {
        "metadata": {"name": world.namespace, "labels": {"pool": world.namespace}},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    world.core.create_node(node)
    world.core.patch_node(world.namespace, {"spec": {"taints": None}})
    try:
        said = world.until_condition("NodesFit", status="True")
        assert "room for 1 engine" in said["message"]
    finally:
        world.core.delete_node(world.namespace)
    world.until_condition("NodesFit", status="False")


def test_a_deleted_resource_is_let_go(world: World) -> None:
    world.create(resource())
    world.until_settled()
    made = world.children()
    client.CustomObjectsApi(world.api).delete_namespaced_custom_object(
        "kvtier.dev", "v1alpha1", world.namespace, "kvcachetiers", "qwen"
    )
    world.core.delete_namespaced_config_map("qwen-picker", world.namespace)  # as the garbage collector would
    world.create(resource("other"))
    world.until_settled("other")
    assert ("ConfigMap", "qwen-picker") in made
    assert world.find("v1", "ConfigMap", "qwen-picker") is None
