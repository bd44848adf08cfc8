"""Whether pods may grow: LimitRanges, quotas, nodes."""

from typing import Any

import pytest

from kvtier_operator.planning.base.node import Node
from kvtier_operator.planning.cluster.growth import NamespaceRules, Refusal, growth_refusal

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
    return growth_refusal(NOW, THEN, pods, rules, nodes)


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


@pytest.mark.parametrize("scoped", [{"scopes": ["BestEffort"]}, {"scopeSelector": {"matchExpressions": []}}])
def test_a_quota_of_others_pods_is_not_judged(scoped: dict[str, object]) -> None:
    assert _refusal(_quota("memory", "1Gi", "0", **scoped)) is None
    assert _refusal(_quota("pods", "1", "1")) is None


def test_the_largest_node_that_takes_the_pod_counts() -> None:
    selecting = {"nodeSelector": {"gpu": "yes"}}
    pods = _pod(64, **selecting), _pod(164, **selecting)

    def refusal(*nodes: Node) -> Refusal | None:
        return growth_refusal(*pods, 1, NamespaceRules(), nodes)

    assert _message(refusal(_node(128, gpu="yes"), _node(512))) == (
        "with the tier a pod asks for 164 GiB of memory, and the largest node for it has 128 GiB: "
        "use larger nodes, or lower spec.tiers.cpu.capacity"
    )
    assert refusal(_node(128, gpu="yes"), _node(164, gpu="yes")) is None


def test_nodes_that_do_not_hold_the_pod_as_it_is_say_nothing() -> None:
    """An autoscaler of nodes may bring another one."""
    assert _refusal(NamespaceRules(), nodes=(_node(32),)) is None
    assert growth_refusal(NOW, THEN, 1, NamespaceRules(), None) is None
