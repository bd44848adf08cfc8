"""The harness itself: the clusters that the other tests rely on do what a cluster does."""

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.fixtures import need
from tests.cluster.harness.providers.provider import Ability, Cluster, Provider
from tests.cluster.harness.stand_ins.kwok import Shape, add_nodes, running_kwok
from tests.shared.waiting import eventually

LABELS = {"app": "harness"}


@pytest.fixture(scope="module")
def cluster_api(cluster: Cluster) -> Iterator[client.ApiClient]:
    with cluster.client() as api:
        yield api


@pytest.fixture
def namespace(cluster_api: client.ApiClient, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.name.removeprefix("test_").replace("_", "-")
    core = client.CoreV1Api(cluster_api)
    core.create_namespace({"metadata": {"name": name}})
    accounts = core.list_namespaced_service_account
    eventually(lambda: accounts(name).items, f"service account in {name}")
    yield name
    core.delete_namespace(name)


def _deployment(replicas: int, **pod: object) -> dict[str, Any]:
    container = {"name": "main", "image": "nowhere.invalid/nothing"}
    return {
        "metadata": {"name": "harness"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [container], **pod}},
        },
    }


def test_deployment_gets_pods_and_loses_them(cluster_api: client.ApiClient, namespace: str) -> None:
    apps, core = client.AppsV1Api(cluster_api), client.CoreV1Api(cluster_api)
    apps.create_namespaced_deployment(namespace, _deployment(3))
    eventually(lambda: len(core.list_namespaced_pod(namespace).items) == 3, "three pods")
    apps.delete_namespaced_deployment("harness", namespace)
    eventually(lambda: not core.list_namespaced_pod(namespace).items, "end of the pods")


def test_service_account_has_its_own_rights_and_no_more(
    cluster: Cluster, cluster_api: client.ApiClient, namespace: str
) -> None:
    file = cluster.kubeconfig_for_service_account(namespace, "default")
    with config.new_client_from_config(str(file)) as api:
        who = client.AuthenticationV1Api(api).create_self_subject_review({}).status.user_info.username
        assert who == f"system:serviceaccount:{namespace}:default"
        with pytest.raises(client.ApiException, match="forbidden"):
            client.CoreV1Api(api).list_namespaced_secret(namespace)
    assert client.CoreV1Api(cluster_api).list_namespaced_secret(namespace).items == []


def test_pods_are_ready_on_played_nodes_where_they_fit(
    provider: Provider, cluster: Cluster, cluster_api: client.ApiClient, namespace: str, say: Say
) -> None:
    need(provider, Ability.CONTROL_PLANE)  # nodes that another's cluster would keep
    apps, core = client.AppsV1Api(cluster_api), client.CoreV1Api(cluster_api)
    selector = {"pool": "huge"}
    container = {
        "name": "main",
        "image": "nowhere.invalid/nothing",
        "resources": {"limits": {"hugepages-2Mi": "1Gi", "memory": "1Gi"}, "requests": {"cpu": "1"}},
    }
    room = {"cpu": "8", "memory": "16Gi", "pods": "110", "hugepages-2Mi": "2Gi", "hugepages-1Gi": "0"}
    with running_kwok(cluster, say):
        nodes = add_nodes(cluster_api, 2, Shape(room, selector))
        apps.create_namespaced_deployment(
            namespace, _deployment(5, nodeSelector=selector, containers=[container])
        )

        def ready() -> bool:
            status = apps.read_namespaced_deployment_status("harness", namespace).status
            return bool(status.ready_replicas == 4)

        eventually(ready, "four Ready pods: two nodes with room for two each")
        pods = core.list_namespaced_pod(namespace).items
        assert sorted(pod.spec.node_name or "none" for pod in pods) == sorted([*nodes, *nodes, "none"])
        apps.delete_namespaced_deployment("harness", namespace)
        eventually(lambda: not core.list_namespaced_pod(namespace).items, "end of the pods")
        for node in nodes:
            core.delete_node(node)
