"""Requests of a whole pod, each case worked out by hand from Kubernetes' rules for init containers."""

from typing import Any

import pytest

from kvtier_operator.planning.cluster.pod_needs import ONE_PER_NODE, pod_needs, pod_requests

GIB = 1 << 30


def container(memory: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - a container's fields
    return {"resources": {"requests": {"memory": memory}}, **more}


def sidecar(memory: str) -> dict[str, Any]:
    return container(memory, restartPolicy="Always")


@pytest.mark.parametrize(
    ("init", "containers", "gib"),
    [
        ([], [container("3Gi"), container("4Gi")], 7),
        # alone, before the containers: the larger of both
        ([container("9Gi")], [container("3Gi"), container("4Gi")], 9),
        ([container("6Gi"), container("5Gi")], [container("7Gi")], 7),
        # a sidecar stays
        ([sidecar("5Gi")], [container("7Gi")], 12),
        # beside those that come after it, not those before
        ([container("9Gi"), sidecar("5Gi")], [container("3Gi")], 9),
        ([sidecar("5Gi"), container("9Gi")], [container("3Gi")], 14),
        ([sidecar("5Gi"), container("1Gi"), sidecar("2Gi")], [container("3Gi")], 10),
    ],
)
def test_containers_count_as_the_scheduler_counts_them(
    init: list[dict[str, Any]], containers: list[dict[str, Any]], gib: int
) -> None:
    assert pod_requests({"initContainers": init, "containers": containers}) == {
        "pods": 1,
        "memory": gib * GIB,
    }


def test_a_limit_without_a_request_is_one() -> None:
    resources = {"limits": {"nvidia.com/gpu": "2", "cpu": "4"}, "requests": {"cpu": "500m"}}
    assert pod_requests({"containers": [{"resources": resources}, {}]}) == {
        "pods": 1,
        "nvidia.com/gpu": 2,
        "cpu": 500,
    }


@pytest.mark.parametrize(
    ("term", "alone"),
    [
        ({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "e"}}}, True),
        ({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}, False),
        ({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "e"}}}, False),
        (
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["e"]}]},
            },
            True,
        ),
    ],
)
def test_anti_affinity_against_its_like_leaves_one_a_node(term: dict[str, Any], *, alone: bool) -> None:
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template = {"metadata": {"labels": {"app": "e"}}, "spec": {"affinity": affinity, "containers": []}}
    assert pod_needs(template).requests == {"pods": 1} | ({ONE_PER_NODE: 1} if alone else {})
