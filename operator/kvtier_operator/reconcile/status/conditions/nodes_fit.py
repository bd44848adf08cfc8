"""NodesFit: whether the cluster's nodes could hold the engines."""

from typing import Final

from kvtier_operator.planning.cluster.nodes_fit import NodesFit
from kvtier_operator.reconcile.facts.condition import (
    UntimedCondition,
    false_condition,
    true_condition,
    unknown_condition,
)

TYPE: Final = "NodesFit"


def nodes_fit_condition(fit: NodesFit) -> UntimedCondition:
    """The condition by how many engines fit on the nodes; other pods on them are the scheduler's business."""
    return (true_condition if fit.fits else false_condition)(TYPE, fit.reason, fit.message)


def nodes_not_seen(why: str) -> UntimedCondition:
    """The condition while the operator may not, or could not yet, list nodes."""
    return unknown_condition(TYPE, "NodesNotSeen", f"nodes were not looked at: {why}")


def no_pod() -> UntimedCondition:
    """The condition of a spec that cannot be planned."""
    return unknown_condition(
        TYPE, "NotPlanned", "the spec was not accepted, so there is no pod to find a node for"
    )
