"""What the cluster around a resource does: kinds that come, namespaces that go, quotas, nodes, restarts."""

import pytest
from kubernetes import client
from tests.cases.routes import condition
from tests.cluster.harness.api.custom_resources import install_definitions
from tests.cluster.harness.operator.operator import Operator
from tests.cluster.harness.programs.modules import published_crds
from tests.cluster.operator.world import POOL, ROUTE, Document, World, create_namespace, resource

_ROUTES = {"inferencepools.inference.networking.k8s.io", "httproutes.gateway.networking.k8s.io"}


def test_kinds_that_are_installed_later(world: World) -> None:
    world.create(resource(router={"gateway": {"parentRef": {"name": "gateway"}}}))
    world.until_settled()
    world.make_ready()
    said = world.until_condition("RouterReady", reason="CRDsMissing")["message"]
    assert all(name in said for name in _ROUTES)
    definitions = (definition for definition in published_crds() if definition["metadata"]["name"] in _ROUTES)
    with install_definitions(world.api, definitions):
        world.until_condition("RouterReady", reason="RouteUnanswered")
        world.gateway_says(condition())
        world.until_condition("Ready", status="True")
        assert world.find(*POOL, "qwen")
        assert world.find(*ROUTE, "qwen")
    world.until_condition("RouterReady", reason="CRDsMissing")


def test_a_label_more_in_a_pools_selector_is_taken_out(world: World) -> None:
    """It would leave the pool without pods, and an apply does not touch it."""
    definitions = (definition for definition in published_crds() if definition["metadata"]["name"] in _ROUTES)
    with install_definitions(world.api, definitions):
        world.create(resource(router={"gateway": {"parentRef": {"name": "gateway"}}}))
        pool = world.until_object(*POOL, "qwen", lambda live: live)
        assert pool
        more = {"spec": {"selector": {"matchLabels": {"somebodys": "label"}}}}
        world.patch(*POOL, "qwen", more)
        repaired = world.until_object(
            *POOL, "qwen", lambda live: live and "somebodys" not in str(live["spec"])
        )
        assert repaired
        assert repaired["spec"] == pool["spec"]
        assert repaired["metadata"]["uid"] == pool["metadata"]["uid"]


def test_a_config_map_that_somebody_made_immutable_follows_all_the_same(world: World) -> None:
    world.create(resource())
    before = world.until_object("v1", "ConfigMap", "qwen-picker", lambda live: live)
    assert before
    world.patch("v1", "ConfigMap", "qwen-picker", {"immutable": True})
    world.change(tiers={"cpu": {"capacity": "200Gi"}})

    def is_another(live: Document | None) -> bool:
        return live is not None and live["data"] != before["data"]

    after = world.until_object("v1", "ConfigMap", "qwen-picker", is_another)
    assert after
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


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
