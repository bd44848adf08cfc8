"""Whether pods may grow: LimitRanges, quotas, nodes."""

from typing import Any

import pytest

from kvtier_operator.planning.base.node import Node
from kvtier_operator.planning.cluster.growth import Growth, NamespaceRules, Refusal, growth_refusal

GIB = 1024**3


def _pod(gib: int, **of_pod: object) -> dict[str, Any]:
    memory = {"memory": f"{gib}Gi"}
    container = {"name": "main", "resources": {"requests": memory, "limits": memory}}
    return {"metadata": {"labels": {"app": "vllm"}}, "spec": {"containers": [container], **of_pod}}


NOW, THEN = _pod(64), _pod(164)


def _limit_range(type_: str, most: str) -> NamespaceRules:
    limit = {"type": type_, "max": {"memory": most}}
    return NamespaceRules(limit_ranges=[{"metadata": {"name": "small"}, "spec": {"limits": [limit]}}])


def _quota(name: str, hard: str, used: str, **spec: object) -> NamespaceRules:
    status = {"hard": {name: hard}, "used": {name: used}}
    return NamespaceRules(quotas=[{"metadata": {"name": "team"}, "spec": spec, "status": status}])


def _node(gib: int, **labels: str) -> Node:
    return Node("node", labels, (), {"memory": gib * GIB}, ready=True, schedulable=True)


def _refusal(rules: NamespaceRules, pods: int = 2, nodes: tuple[Node, ...] = ()) -> Refusal | None:
    return growth_refusal([Growth("deployment/chat", NOW, THEN, pods)], rules, nodes)


def _message(refusal: Refusal | None) -> str:
    assert refusal
    return refusal.message


@pytest.mark.parametrize(("type_", "whose"), [("Container", "container main"), ("Pod", "a pod")])
def test_a_limit_range_counts_the_pod_as_it_would_be(type_: str, whose: str) -> None:
    assert _message(_refusal(_limit_range(type_, "128Gi"))) == (
        f"LimitRange small allows {whose} 128 GiB of memory, and with the tier it asks for 164 GiB: "
        "have it raised, or lower spec.tiers.cpu.capacity"
    )
    assert _refusal(_limit_range(type_, "164Gi")) is None


@pytest.mark.parametrize("name", ["memory", "requests.memory", "limits.memory"])
def test_a_quota_needs_room_for_all_pods_that_have_not_grown(name: str) -> None:
    assert _refusal(_quota(name, "400Gi", "200Gi")) is None
    assert _message(_refusal(_quota(name, "400Gi", "201Gi"))) == (
        f"ResourceQuota team has 199 GiB of {name} left, and the tier takes 200 GiB more for 2 pods: "
        "have it raised, or lower spec.tiers.cpu.capacity"
    )
    assert _refusal(_quota(name, "400Gi", "400Gi"), pods=0) is None


def test_a_quota_has_room_for_one_pod_more_as_it_had_before() -> None:
    """A pod that its owner adds must not be refused for the tier's sake."""
    assert _message(_refusal(_quota("memory", "400Gi", "300Gi"), pods=0)) == (
        "ResourceQuota team has 100 GiB of memory left, and one pod more fits with the 64 GiB of its owner, "
        "not with the tier's 164 GiB: have it raised, or lower spec.tiers.cpu.capacity"
    )
    for used in ("236Gi", "337Gi"):
        assert _refusal(_quota("memory", "400Gi", used), pods=0) is None


def test_pods_of_all_kinds_share_a_quota_and_are_named_where_they_do_not_fit() -> None:
    growths = [Growth("deployment/chat", NOW, THEN, 1), Growth("deployment/long", NOW, _pod(264), 1)]
    told = growth_refusal(growths, _quota("memory", "400Gi", "101Gi"), None)
    assert "takes 300 GiB more for 2 pods" in _message(told)
    told = growth_refusal(growths, _limit_range("Pod", "200Gi"), None)
    assert _message(told).startswith("deployment/long: LimitRange small allows a pod 200 GiB")


def _scope(name: str, operator: str = "Exists", *values: str) -> dict[str, object]:
    return {
        "scopeSelector": {
            "matchExpressions": [{"scopeName": name, "operator": operator, "values": [*values]}]
        }
    }


@pytest.mark.parametrize(
    ("scoped", "of_pod", "counts"),
    [
        ({"scopes": ["BestEffort"]}, {}, False),
        ({"scopes": ["NotBestEffort", "NotTerminating"]}, {}, True),
        ({"scopes": ["Terminating"]}, {}, False),
        (_scope("Terminating"), {"activeDeadlineSeconds": 60}, True),
        (_scope("PriorityClass", "In", "high"), {"priorityClassName": "high"}, True),
        (_scope("PriorityClass", "In", "high"), {"priorityClassName": "low"}, False),
        (_scope("PriorityClass", "NotIn", "high"), {}, True),
        (_scope("PriorityClass"), {}, False),
        (_scope("CrossNamespacePodAffinity"), {}, False),
    ],
)
def test_a_quota_counts_pods_in_all_of_its_scopes(
    scoped: dict[str, object], of_pod: dict[str, object], *, counts: bool
) -> None:
    growth = Growth("deployment/chat", _pod(64, **of_pod), _pod(164, **of_pod), 1)
    refusal = growth_refusal([growth], _quota("memory", "1Gi", "0", **scoped), None)
    assert (refusal is not None) == counts


def test_a_quota_of_something_else_is_not_judged() -> None:
    assert _refusal(_quota("pods", "1", "1")) is None


def test_the_largest_node_that_takes_the_pod_counts() -> None:
    selecting = {"nodeSelector": {"gpu": "yes"}}
    pods = _pod(64, **selecting), _pod(164, **selecting)

    def refusal(*nodes: Node) -> Refusal | None:
        return growth_refusal([Growth("deployment/chat", *pods, 1)], NamespaceRules(), nodes)

    assert _message(refusal(_node(128, gpu="yes"), _node(512))) == (
        "with the tier a pod asks for 164 GiB of memory, and the largest node for it has 128 GiB: "
        "use larger nodes, or lower spec.tiers.cpu.capacity"
    )
    assert refusal(_node(128, gpu="yes"), _node(164, gpu="yes")) is None


def test_nodes_that_do_not_hold_the_pod_as_it_is_say_nothing() -> None:
    """An autoscaler of nodes may bring another one."""
    assert _refusal(NamespaceRules(), nodes=(_node(32),)) is None
    assert growth_refusal([Growth("deployment/chat", NOW, THEN, 1)], NamespaceRules(), None) is None
