"""What a pod needs of a node, counted as the scheduler counts it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.planning.base.label_selector import (
    mapping,
    mappings,
    selects,
    with_values_at_hand,
)
from kvtier_operator.planning.base.node import whole

PODS: Final = "pods"
ONE_PER_NODE: Final = "engines of one node"
"""Stands among the requests where the pods' own anti-affinity allows a node one of them."""
_HOSTNAME: Final = "kubernetes.io/hostname"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

Needs = dict[str, int]


def pod_requests(pod: Mapping[str, Any]) -> Needs:
    """Requests of a whole pod, zero ones left out; `pods` is 1.

    Args:
        pod: A pod's spec.
    """
    needs = pod_total(pod, container_requests)
    return {PODS: 1} | {name: needs[name] for name in sorted(needs) if needs[name]}


def pod_total(pod: Mapping[str, Any], of: Callable[[Mapping[str, Any]], Needs]) -> Needs:
    """What a whole pod takes, counted as Kubernetes counts requests and limits.

    Containers and restartable init containers (sidecars) add up, since they run together. Any other init
    container runs alone, beside the sidecars started before it; the pod needs the larger of both.
    Source: k8s.io/component-helpers/resource, PodRequests and AggregateContainerRequests.

    Args:
        pod: A pod's spec.
        of: What one container takes.
    """
    sidecars: Needs = {}
    starting: Needs = {}
    for container in pod.get("initContainers", ()):
        needs = of(container)
        if container.get("restartPolicy") == "Always":
            sidecars = _sum(sidecars, needs)
            starting = _largest(starting, sidecars)
        else:
            starting = _largest(starting, _sum(sidecars, needs))
    running = sidecars
    for container in pod.get("containers", ()):
        running = _sum(running, of(container))
    return _largest(running, starting)


def container_requests(container: Mapping[str, Any]) -> Needs:
    """A container's requests; its limit where it gives only that, as the API server's defaulting has it."""
    resources = container.get("resources", {})
    return _whole({**resources.get("limits", {}), **resources.get("requests", {})})


def container_limits(container: Mapping[str, Any]) -> Needs:
    """A container's limits."""
    return _whole(container.get("resources", {}).get("limits", {}))


def _whole(quantities: Mapping[str, str]) -> Needs:
    return {name: whole(name, quantity, round_up=True) for name, quantity in quantities.items()}


def _sum(one: Needs, other: Needs) -> Needs:
    return {name: one.get(name, 0) + other.get(name, 0) for name in one | other}


def _largest(one: Needs, other: Needs) -> Needs:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in one | other}


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a required node affinity: all of it must hold.

    Attributes:
        labels: What it requires of a node's labels.
        fields: What it requires of a node's fields; the one there is is metadata.name.
    """

    labels: tuple[Mapping[str, Any], ...]
    fields: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class PodNeeds:
    """One engine pod, as far as a node must suit it.

    Attributes:
        requests: What it requests in all, as in `Node.allocatable`.
        node_selector: Labels that the node must have.
        node_affinity_terms: Required node affinity: one of these terms must match; None where there is none.
        tolerations: Taints that it tolerates, as in a pod.
    """

    requests: Mapping[str, int]
    node_selector: Mapping[str, str]
    node_affinity_terms: tuple[NodeTerm, ...] | None
    tolerations: tuple[Mapping[str, Any], ...]


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
        NodeTerm(*(_requirements(term.get(each)) for each in ("matchExpressions", "matchFields")))
        for term in mappings(mapping(required).get("nodeSelectorTerms"))
    )


def _requirements(given: object) -> tuple[Mapping[str, Any], ...]:
    return tuple(map(with_values_at_hand, mappings(given)))


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
