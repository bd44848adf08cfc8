"""Whether a node takes a pod at all, whatever its size."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kvtier_operator.planning.base.label_selector import requirement_holds
from kvtier_operator.planning.base.node import Node, Taint
from kvtier_operator.planning.cluster.nodes.pod_needs import NodeTerm, PodNeeds

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
    """Why a node does not take the pod.

    Attributes:
        cause: What kind of reason it is.
        what: Its fault in words that follow a number of nodes; they name nothing that the spec does not.
    """

    cause: Cause
    what: str


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
        if taint.effect in _KEEPING_AWAY and not _tolerated(taint, needs.tolerations):
            return Mismatch(Cause.TAINT, _taint_text(taint))
    return None if node.ready else Mismatch(Cause.NOT_READY, "not Ready")


def _taint_text(taint: Taint) -> str:
    if taint.key == UNSCHEDULABLE.key:
        return "cordoned"
    return f"with a taint of effect {taint.effect} that is not tolerated"


def _tolerated(taint: Taint, tolerations: Iterable[Mapping[str, Any]]) -> bool:
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
        all(requirement_holds(each, node.labels) for each in term.labels)
        and all(requirement_holds(each, {"metadata.name": node.name}) for each in term.fields)
    )
