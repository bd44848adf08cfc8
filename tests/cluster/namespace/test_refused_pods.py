"""Pods that a real API server refuses a real controller: what the conditions make of its words."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from kubernetes import client
from tests.cluster.harness.api.custom_resources import install
from tests.cluster.harness.operator.operator import running_operator
from tests.cluster.harness.programs.modules import published_crds
from tests.cluster.harness.providers.provider import Cluster
from tests.cluster.harness.stand_ins.kwok import Shape, add_nodes
from tests.cluster.operator.world import World, condition, create_namespace, resource

from kvtier_operator.api.schema.crd import crd

_POOLS = "inferencepools.inference.networking.k8s.io"
_NUMBERS = count(1)
_CPU = {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}}


@pytest.fixture(scope="module")
def served(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster with an operator, for as long as these tests take."""
    definitions = [
        crd(),
        *(definition for definition in published_crds() if definition["metadata"]["name"] == _POOLS),
    ]
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with cluster.client() as api:
        for definition in definitions:
            install(api, definition)
        try:
            with running_operator(cluster.kubeconfig(), log):
                yield cluster
        finally:
            for definition in definitions:
                name = definition["metadata"]["name"]
                client.ApiextensionsV1Api(api).delete_custom_resource_definition(name)


@pytest.fixture
def world(served: Cluster) -> Iterator[World]:
    with served.client() as api:
        world = World(api, create_namespace(api, f"refused-pods-{next(_NUMBERS)}"))
        yield world
        world.core.delete_namespace(world.namespace)


def test_a_limit_range(world: World) -> None:
    item = {"type": "Container", "max": {"cpu": "250m"}}
    world.core.create_namespaced_limit_range(
        world.namespace, {"metadata": {"name": "team"}, "spec": {"limits": [item]}}
    )
    world.create(resource(engine=_CPU))
    # of the picker, which sets no limit, the server does not say where the limit comes from
    for type_, words in (
        ("EnginesReady", ("qwen-engine", "maximum cpu usage per Container is 250m, but limit is 2")),
        ("RouterReady", ("qwen-picker", "must be less than or equal to cpu limit of 250m")),
    ):
        said = world.until_condition(type_, reason="FailedCreate")["message"]
        assert all(word in said for word in words)
        assert "ask the namespace's owner" in said
    world.until_condition("Ready", reason="FailedCreate")
    world.core.delete_namespaced_limit_range("team", world.namespace)
    for type_ in ("EnginesReady", "RouterReady"):
        world.until_condition(type_, reason="Unschedulable")  # there are pods, and no nodes


def test_a_quota(world: World) -> None:
    hard = {"limits.cpu": "1", "limits.memory": "1Gi"}
    world.core.create_namespaced_resource_quota(
        world.namespace, {"metadata": {"name": "team"}, "spec": {"hard": hard}}
    )
    world.create(resource(engine=_CPU))
    said = world.until_condition("EnginesReady", reason="QuotaExceeded")["message"]
    assert "exceeded quota: team" in said
    said = world.until_condition("RouterReady", reason="FailedCreate")["message"]
    assert "must specify limits.cpu" in said


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        ({"persistentVolumeClaim": {"claimName": "cache"}}, 'persistentvolumeclaim "cache" not found'),
        ({"ephemeral": {"storageClassName": "nowhere"}}, "unbound immediate PersistentVolumeClaims"),
    ],
)
def test_a_disk_that_cannot_be_had(world: World, volume: dict[str, Any], words: str) -> None:
    [node] = add_nodes(world.api, 1, Shape(labels={"pool": world.namespace}))
    try:
        disk = {"capacity": "1Ti", "volume": volume}
        tiers = {"cpu": {"capacity": "100Gi"}, "disk": disk}
        world.create(resource(replicas=1, engine={"nodeSelector": {"pool": world.namespace}}, tiers=tiers))
        # the scheduler has other words first, while the volume's claim is being made
        world.until(lambda each: words in str(condition(each, "EnginesReady")), words)
    finally:
        world.core.delete_node(node)
