"""What a pod needs of a node, and which nodes take it."""

from typing import Any

import pytest
from tests.cases.nodes import node
from tests.shared.steps import steps

from kvtier_operator.planning.base.node import Node, Taint
from kvtier_operator.planning.cluster.pod_needs import (
    ONE_PER_NODE,
    Cause,
    Mismatch,
    mismatch,
    pod_needs,
    pod_requests,
)

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


GPU = Taint("gpu", "h100", "NoSchedule")


def of(pod: dict[str, Any], one: Node) -> Mismatch | None:
    return mismatch(one, pod_needs({"metadata": {"labels": {}}, "spec": {"containers": [], **pod}}))


def affinity(*terms: object) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


def expression(operator: str, *values: str, key: str = "gpu") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("one", "cause", "what"),
    [
        (node(labels={"gpu": "h100"}), None, ""),
        (node(labels={"gpu": "a100"}), Cause.LABEL, "without label gpu=h100"),
        (
            node(labels={"gpu": "h100"}, taints=(GPU,)),
            Cause.TAINT,
            "with a taint of effect NoSchedule that is not tolerated",
        ),
        (node(labels={"gpu": "h100"}, taints=(Taint("gpu", "", "PreferNoSchedule"),)), None, ""),
        (
            node(labels={"gpu": "h100"}, taints=(Taint("a", "", "NoExecute"),)),
            Cause.TAINT,
            "with a taint of effect NoExecute that is not tolerated",
        ),
        (node(labels={"gpu": "h100"}, schedulable=False), Cause.TAINT, "cordoned"),
        (node(labels={"gpu": "h100"}, ready=False), Cause.NOT_READY, "not Ready"),
    ],
)
def test_a_node_and_its_fault(one: Node, cause: Cause | None, what: str) -> None:
    found = of({"nodeSelector": {"gpu": "h100"}}, one)
    assert found == (None if cause is None else Mismatch(cause, what))


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "gpu", "value": "h100"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "h100", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "a100"}, False),
        ({"key": "gpu"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
    ],
)
def test_tolerations(toleration: dict[str, Any], *, tolerated: bool) -> None:
    assert (of({"tolerations": [toleration]}, node(taints=(GPU,))) is None) is tolerated


def test_each_taint_needs_its_toleration() -> None:
    tolerations = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
    assert of(tolerations, node(taints=(GPU, Taint("team", "x", "NoSchedule")))) is not None
    cordoned = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    assert of({"tolerations": [cordoned]}, node(schedulable=False)) is None


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        ([expression("In", "a100", "h100")], True),
        ([expression("In", "a100")], False),
        ([expression("In", "a100"), expression("Exists")], True),  # one term is enough
        (
            [
                {
                    "matchExpressions": [
                        *expression("Exists")["matchExpressions"],
                        {"key": "x", "operator": "Exists"},
                    ]
                }
            ],
            False,
        ),
        ([expression("NotIn", "h100")], False),
        ([expression("NotIn", "a100")], True),
        ([expression("NotIn", "a", key="absent")], True),
        ([expression("DoesNotExist")], False),
        ([expression("DoesNotExist", key="absent")], True),
        ([expression("Gt", "3", key="cores")], True),
        ([expression("Lt", "3", key="cores")], False),
        ([expression("Gt", "3")], False),  # h100 is no number
        ([expression("Gt", "3", "4", key="cores")], False),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}], True),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-b"]}]}], False),
        ([{}], False),
        ([], False),
        ([{"matchExpressions": [1, "x"]}, 7], False),
        ([expression("Unknown", "h100")], False),
    ],
)
def test_required_node_affinity(terms: list[object], *, matches: bool) -> None:
    found = of(affinity(*terms), node(labels={"gpu": "h100", "cores": "4"}))
    assert found == (None if matches else Mismatch(Cause.AFFINITY, "outside the required node affinity"))


@pytest.mark.parametrize("given", [{"nodeAffinity": {"anything": [1]}}, {"nodeAffinity": None}, {"other": 1}])
def test_an_affinity_that_requires_nothing(given: dict[str, Any]) -> None:
    assert of({"affinity": given}, node()) is None


@pytest.mark.parametrize("operator", ["In", "NotIn"])
def test_a_node_costs_no_more_however_many_values_are_named(operator: str) -> None:
    def cost(count: int) -> int:
        pod = affinity(expression(operator, *map(str, range(count))))
        needs = pod_needs({"metadata": {"labels": {}}, "spec": {"containers": [], **pod}})
        return steps(lambda: mismatch(node(labels={"gpu": "none of them"}), needs))

    assert cost(5000) == cost(5)
