"""What a pod needs of a node, counted as the scheduler counts it, and whether a node takes it at all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kvtier_operator.planning.base.label_selector import (
    mapping,
    mappings,
    requirement_holds,
    selects,
    with_values_at_hand,
)
from kvtier_operator.planning.base.node import Node, Taint, whole_number

PODS: Final = "pods"
ONE_PER_NODE: Final = "engines of one node"
"""Stands among the requests where the pods' own anti-affinity allows a node one of them."""
_HOSTNAME: Final = "kubernetes.io/hostname"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

Needs = dict[str, int]


def pod_requests(pod: Mapping[str, Any]) -> Needs:
    """Requests of a whole pod, zero ones left out; `pods` is 1.

    Containers and restartable init containers (sidecars) add up, since they run together. Any other init
    container runs alone, beside the sidecars started before it; the pod needs the larger of both.
    Source: k8s.io/component-helpers/resource, PodRequests and AggregateContainerRequests.

    Args:
        pod: A pod's spec.
    """
    sidecars: Needs = {}
    starting: Needs = {}
    for container in pod.get("initContainers", ()):
        needs = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars = _sum(sidecars, needs)
            starting = _largest(starting, sidecars)
        else:
            starting = _largest(starting, _sum(sidecars, needs))
    running = sidecars
    for container in pod.get("containers", ()):
        running = _sum(running, _container_requests(container))
    total = _largest(running, starting)
    return {PODS: 1} | {name: total[name] for name in sorted(total) if total[name]}


def _container_requests(container: Mapping[str, Any]) -> Needs:
    """A container's requests; its limit where it gives only that, as the API server's defaulting has it."""
    resources = container.get("resources", {})
    quantities = {**resources.get("limits", {}), **resources.get("requests", {})}
    return {name: whole_number(name, quantity, round_up=True) for name, quantity in quantities.items()}


def _sum(one: Needs, other: Needs) -> Needs:
    return {name: one.get(name, 0) + other.get(name, 0) for name in one | other}


def _largest(one: Needs, other: Needs) -> Needs:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in one | other}


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a required node affinity: all of it must hold."""

    labels: tuple[Mapping[str, Any], ...]  # what it requires of a node's labels
    # what it requires of a node's fields; the one there is is metadata.name
    fields: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class PodNeeds:
    """One engine pod, as far as a node must suit it."""

    requests: Mapping[str, int]  # what it requests in all, as in `Node.allocatable`
    node_selector: Mapping[str, str]  # labels that the node must have
    # required node affinity: one of these terms must match; None where there is none
    node_affinity_terms: tuple[NodeTerm, ...] | None
    tolerations: tuple[Mapping[str, Any], ...]  # taints that it tolerates, as in a pod


def pod_needs(template: Mapping[str, Any]) -> PodNeeds:
    """What a pod needs of a node.

    Args:
        template: A pod template: its labels in `metadata`, the pod's spec in `spec`.
    """
    pod = template["spec"]
    alone = keeps_away_its_like(pod.get("affinity", {}), template["metadata"]["labels"])
    return PodNeeds(
        requests=pod_requests(pod) | ({ONE_PER_NODE: 1} if alone else {}),
        node_selector=pod.get("nodeSelector", {}),
        node_affinity_terms=_required_terms(pod.get("affinity", {})),
        tolerations=tuple(pod.get("tolerations", ())),
    )


def _required_terms(affinity: Mapping[str, Any]) -> tuple[NodeTerm, ...] | None:
    """The resource takes an affinity as it is, so its shape is not certain: what is none matches nothing."""
    required = mapping(affinity.get("nodeAffinity")).get(_REQUIRED)
    if required is None:
        return None
    return tuple(
        NodeTerm(*(_requirements(term.get(key)) for key in ("matchExpressions", "matchFields")))
        for term in mappings(mapping(required).get("nodeSelectorTerms"))
    )


def _requirements(field: object) -> tuple[Mapping[str, Any], ...]:
    return tuple(map(with_values_at_hand, mappings(field)))


def keeps_away_its_like(affinity: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether required anti-affinity by host name selects the pod's own labels.

    Args:
        affinity: A pod's, as nobody has checked it yet.
        labels: The pod's own.
    """
    terms = mappings(mapping(affinity.get("podAntiAffinity")).get(_REQUIRED))
    return any(
        term.get("topologyKey") == _HOSTNAME and selects(mapping(term.get("labelSelector")), labels)
        for term in terms
    )


UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""What cordoning a node means to a pod (Kubernetes, scheduler plugin NodeUnschedulable)."""
_KEEPING_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})


class Cause(StrEnum):
    """Why a node does not take the pod; the value is the field to look at, or nothing."""

    NOT_READY = ""
    LABEL = "spec.engine.nodeSelector"
    AFFINITY = "spec.engine.affinity"
    TAINT = "spec.engine.tolerations"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why a node does not take the pod."""

    cause: Cause  # what kind of reason it is
    what: str  # its fault in words that follow a number of nodes; they name nothing that the spec does not


def mismatch(node: Node, needs: PodNeeds) -> Mismatch | None:
    """The first reason why `node` does not take the pod; None where it does."""
    for name, value in needs.node_selector.items():
        if node.labels.get(name) != value:
            return Mismatch(Cause.LABEL, f"without label {name}={value}")
    if needs.node_affinity_terms is not None and not any(
        _term_matches(term, node) for term in needs.node_affinity_terms
    ):
        return Mismatch(Cause.AFFINITY, "outside the required node affinity")
    taints = node.taints if node.schedulable else (*node.taints, UNSCHEDULABLE)
    for taint in taints:
        if taint.effect in _KEEPING_AWAY and not _is_tolerated(taint, needs.tolerations):
            return Mismatch(Cause.TAINT, _taint_text(taint))
    return None if node.ready else Mismatch(Cause.NOT_READY, "not Ready")


def _taint_text(taint: Taint) -> str:
    if taint.key == UNSCHEDULABLE.key:
        return "cordoned"
    return f"with a taint of effect {taint.effect} that is not tolerated"


def _is_tolerated(taint: Taint, tolerations: Iterable[Mapping[str, Any]]) -> bool:
    """Source: k8s.io/api/core/v1, Toleration.ToleratesTaint."""
    return any(
        toleration.get("effect") in (None, "", taint.effect)
        and toleration.get("key") in (None, "", taint.key)
        and (toleration.get("operator") == "Exists" or (toleration.get("value") or "") == taint.value)
        for toleration in tolerations
    )


def _term_matches(term: NodeTerm, node: Node) -> bool:
    """A term without requirements matches no node.

    Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity.
    """
    return bool(term.labels or term.fields) and (
        all(requirement_holds(requirement, node.labels) for requirement in term.labels)
        and all(requirement_holds(requirement, {"metadata.name": node.name}) for requirement in term.fields)
    )
