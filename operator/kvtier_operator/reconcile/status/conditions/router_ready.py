"""RouterReady: whether requests find their way through the picker."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kvtier_operator.reconcile.apply.failure import ApplyFailure
from kvtier_operator.reconcile.facts.deployment import DeploymentFacts
from kvtier_operator.reconcile.facts.pod import NotReadyPod
from kvtier_operator.reconcile.status.condition import UntimedCondition, false_condition, true_condition
from kvtier_operator.reconcile.status.not_created import not_created
from kvtier_operator.reconcile.status.rollout import counts, hindrance
from kvtier_operator.reconcile.status.route_state import Route, hidden_words, route_trouble
from kvtier_operator.reconcile.status.unserved_kinds import UnservedKinds

TYPE: Final = "RouterReady"


def router_ready(
    picker: DeploymentFacts | None,
    troubles: Sequence[NotReadyPod],
    failures: Sequence[ApplyFailure],
    kinds: UnservedKinds,
    route: Route | None = None,
) -> UntimedCondition:
    """By the picker's Deployment, by what could not be made, and by what is said of the route.

    Args:
        picker: The picker's Deployment; None where there is none yet.
        troubles: Picker pods that are not ready, the most telling first.
        failures: Objects of picker and route that could not be applied.
        kinds: Kinds of objects that the cluster does not serve.
        route: The resource's route; None where there is none.
    """
    failures = (*failures, *kinds.failures)
    if failures:
        return false_condition(TYPE, failures[0].reason, "; ".join(each.message for each in failures))
    if kinds.missing_crds:
        return false_condition(TYPE, "CRDsMissing", _missing(kinds.missing_crds) + _beside(picker, troubles))
    if picker is None:
        return not_created(TYPE, "the picker's")
    if picker.wanted > 1:
        picker = replace(picker, stalled=False)  # as the standbys are, from ten minutes on, always
    count = counts(picker, "picker pods")
    if not _serves(picker):
        reason, said = hindrance(picker, troubles)
        return false_condition(TYPE, reason, f"{count}; {said}" if said else count)
    count += _standbys(picker, troubles)
    if route and (trouble := route_trouble(route)):
        reason, said = trouble
        return false_condition(TYPE, reason, f"{count}; {said}")
    through = f"; its route is taken by Gateway {route.gateways}" if route else ""
    if route and route.hidden:
        through += f", but {hidden_words(route.name, route.hidden)}"
    without = f"; not made, for want of its CRD: {', '.join(kinds.left_out)}" if kinds.left_out else ""
    return true_condition(TYPE, "AllReady", count + through + without)


def _serves(picker: DeploymentFacts) -> bool:
    """Of several pickers the leader alone is ever ready."""
    return picker.led if picker.wanted > 1 else picker.complete


def _standbys(picker: DeploymentFacts, troubles: Sequence[NotReadyPod]) -> str:
    """What the pods are that are not ready, and what keeps one of them from standing by."""
    if picker.ready >= picker.wanted:
        return ""
    telling = any(each.reason for each in troubles)
    return f"; {hindrance(picker, troubles)[1]}" if telling else ", which leads; the others stand by"


def _beside(picker: DeploymentFacts | None, troubles: Sequence[NotReadyPod]) -> str:
    """What keeps the picker's pods as well: whoever installs a CRD need not come back for that."""
    said = "" if picker is None or _serves(picker) else hindrance(picker, troubles)[1]
    return f"; picker pods: {said}" if said else ""


def _missing(names: Sequence[str]) -> str:
    it = "it" if len(names) == 1 else "them"
    return (
        f"the cluster does not serve {', '.join(names)}: install {it}, and the rest follows by itself; "
        "meanwhile the engines answer through their Service"
    )
