"""NodesFit: whether the cluster's nodes could hold the engines."""

from typing import Final

from kvtier_operator.planning.nodes.fit import NodesFit
from kvtier_operator.reconcile.status.verdict import Verdict, fails, holds, unknown

TYPE: Final = "NodesFit"


def nodes_fit_condition(fit: NodesFit) -> Verdict:
    """By the count of what fits on which nodes; other pods on them are the scheduler's business."""
    return (holds if fit.fits else fails)(TYPE, fit.reason, fit.message)


def nodes_not_seen(why: str) -> Verdict:
    """For an operator that may not, or could not yet, list nodes."""
    return unknown(TYPE, "NodesNotSeen", f"nodes were not looked at: {why}")


def no_pod() -> Verdict:
    """For a spec of which no plan can be made."""
    return unknown(TYPE, "NotPlanned", "the spec was not accepted, so there is no pod to find a node for")
