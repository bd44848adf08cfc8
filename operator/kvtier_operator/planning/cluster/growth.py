"""Whether pods that others own may grow: what their namespace and the nodes say of them as they would be.

A pod that a LimitRange or a quota refuses would not start any more: this is asked before any is changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.planning.base.node import Node, whole_number
from kvtier_operator.planning.cluster.pod_needs import mismatch, pod_needs, pod_requests
from kvtier_operator.planning.cluster.quota_scopes import counts_pod
from kvtier_operator.planning.units import many, size

Document = Mapping[str, Any]
_WAY_OUT: Final = "lower spec.tiers.cpu.capacity"
_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
_KINDS: Final = ("requests", "limits")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why pods may not grow."""

    reason: str  # CamelCase, as in a condition
    message: str  # one sentence: what, how much, and what to do


@dataclass(frozen=True, slots=True)
class NamespaceRules:
    """What a namespace has its pods keep to, as the API server has it; empty where there is nothing."""

    limit_ranges: Sequence[Document] = ()
    quotas: Sequence[Document] = ()


@dataclass(frozen=True, slots=True)
class Growth:
    """Pods that are alike, and how they would be."""

    owner: str  # for people, such as `deployment/chat`
    now: Document  # one of them as its owner has it: labels in `metadata`, the pod's spec in `spec`
    then: Document  # the same as it would be
    pods: int = 0  # how many of them there are that have not grown yet, and are to now


def growth_refusal(
    growths: Sequence[Growth], rules: NamespaceRules, nodes: Sequence[Node] | None
) -> Refusal | None:
    """Why pods may not become what they would be; None where nothing speaks against it.

    Args:
        growths: Each kind of pods.
        rules: What their namespace says.
        nodes: All nodes; None where they are not known.
    """
    for growth in growths:
        refusal = _limit_range_refusal(growth.now, growth.then, rules.limit_ranges) or _node_refusal(
            growth.now, growth.then, nodes or ()
        )
        if refusal is not None:
            named = f"{growth.owner}: {refusal.message}" if len(growths) > 1 else refusal.message
            return Refusal(refusal.reason, named)
    return _quota_refusal(growths, rules.quotas)


def unmeasured_refusal(namespace: str, rules: NamespaceRules) -> Refusal | None:
    """Why nothing is published before a pod was seen; None where the namespace has nothing to measure by."""
    if not rules.limit_ranges and not rules.quotas:
        return None
    why = f"namespace {namespace} has LimitRanges or ResourceQuotas"
    return Refusal("NotMeasured", f"{why}, and no pod was seen yet that could be measured by them")


def _limit_range_refusal(now: Document, then: Document, limit_ranges: Iterable[Document]) -> Refusal | None:
    grown = _grown(now, then)
    for document in limit_ranges:
        for limit in document.get("spec", {}).get("limits") or ():
            for name in sorted(grown & (limit.get("max") or {}).keys()):
                most_bytes = whole_number(name, limit["max"][name])
                whose, asked_bytes = _largest(then, limit.get("type", ""), name)
                if asked_bytes > most_bytes:
                    what = f"allows {whose} {size(most_bytes)} of {name}"
                    needed = f"with the tier it asks for {size(asked_bytes)}"
                    return Refusal(
                        "LimitRangeExceeded",
                        f"LimitRange {document['metadata']['name']} {what}, and {needed}: have it raised, "
                        f"or {_WAY_OUT}",
                    )
    return None


def _largest(pod: Document, type_: str, resource: str) -> tuple[str, int]:
    """Whom a LimitRange of a type is about, and the most that one of them asks for."""
    if type_ == "Pod":
        return "a pod", max(_sum(pod["spec"], kind).get(resource, 0) for kind in _KINDS)
    if type_ != "Container":
        return "", 0
    asked = (
        (f"container {container['name']}", whole_number(resource, quantities[resource], round_up=True))
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
        for quantities in (container.get("resources") or {}).values()
        if isinstance(quantities, Mapping) and resource in quantities
    )
    return max(asked, key=lambda entry: entry[1], default=("", 0))


def _quota_refusal(growths: Sequence[Growth], quotas: Iterable[Document]) -> Refusal | None:
    for document in quotas:
        spec, status = document.get("spec", {}), document.get("status") or {}
        counted = [growth for growth in growths if counts_pod(spec, growth.then["spec"])]
        hard, used = status.get("hard") or spec.get("hard") or {}, status.get("used") or {}
        for name in sorted(hard):
            kind, resource = _of_quota(name)
            left_bytes = whole_number(resource, hard[name]) - whole_number(resource, used.get(name, 0))
            if why := _no_room(counted, kind, resource, left_bytes):
                what = f"has {size(max(left_bytes, 0))} of {name} left"
                return Refusal(
                    "QuotaExceeded",
                    f"ResourceQuota {document['metadata']['name']} {what}, and {why}: have it raised, "
                    f"or {_WAY_OUT}",
                )
    return None


def _no_room(growths: Sequence[Growth], kind: str, resource: str, left_bytes: int) -> str:
    """Why the pods have no room to grow, or one more has none for the tier's sake; empty where neither."""
    more_bytes = sum(
        _more(growth.now, growth.then, kind).get(resource, 0) * growth.pods for growth in growths
    )
    pods = sum(growth.pods for growth in growths)
    if more_bytes > max(left_bytes, 0):
        return f"the tier takes {size(more_bytes)} more for {many(pods, 'pod')}"
    for growth in () if pods else growths:
        if not _more(growth.now, growth.then, kind).get(resource):
            continue
        own_bytes, grown_bytes = (
            _sum(pod["spec"], kind).get(resource, 0) for pod in (growth.now, growth.then)
        )
        if own_bytes <= left_bytes < grown_bytes:
            own, grown = size(own_bytes), size(grown_bytes)
            return f"one pod more fits with the {own} of its owner, not with the tier's {grown}"
    return ""


def _of_quota(name: str) -> tuple[str, str]:
    """What a quota counts, such as `limits` of `memory`; without a kind it is requests."""
    kind, dot, resource = name.partition(".")
    return (kind, resource) if dot and kind in _KINDS else ("requests", name)


def _node_refusal(now: Document, then: Document, nodes: Iterable[Node]) -> Refusal | None:
    """Only where there are nodes for it that hold it as it is: others may be on their way."""
    needs, grown = pod_needs(_template(then)), _grown(now, then)
    before = pod_requests(now["spec"])
    fitting = [
        node
        for node in nodes
        if mismatch(node, needs) is None
        and all(node.allocatable.get(name, 0) >= before.get(name, 0) for name in grown)
    ]
    for name in sorted(grown):
        most = max((node.allocatable.get(name, 0) for node in fitting), default=None)
        needed = needs.requests.get(name, 0)
        if most is not None and needed > most:
            return Refusal(
                "NodeTooSmall",
                f"with the tier a pod asks for {size(needed)} of {name}, and the largest node for it has "
                f"{size(most)}: use larger nodes, or {_WAY_OUT}",
            )
    return None


def _template(pod: Document) -> Document:
    return {"metadata": {"labels": pod["metadata"].get("labels") or {}}, "spec": pod["spec"]}


def _grown(now: Document, then: Document) -> set[str]:
    """Names of the resources of which more is asked for, requested or as a limit."""
    return {name for kind in _KINDS for name in _more(now, then, kind)}


def _more(now: Document, then: Document, kind: str) -> dict[str, int]:
    before, after = _sum(now["spec"], kind), _sum(then["spec"], kind)
    more = {name: after[name] - before.get(name, 0) for name in after if name.startswith(_BYTES)}
    return {name: amount for name, amount in more.items() if amount > 0}


def _sum(pod: Document, kind: str) -> Mapping[str, int]:
    """Requests or limits of a whole pod."""
    if kind == "requests":
        return pod_requests(pod)
    containers = {
        group: [
            {**container, "resources": {"requests": _limits(container)}} for container in pod.get(group, ())
        ]
        for group in ("initContainers", "containers")
    }
    return pod_requests(containers)


def _limits(container: Document) -> Mapping[str, Any]:
    limits: Mapping[str, Any] = (container.get("resources") or {}).get("limits") or {}
    return limits
