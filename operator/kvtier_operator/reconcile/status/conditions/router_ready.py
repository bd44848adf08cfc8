"""RouterReady: whether requests reach the engines through the picker."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kvtier_operator.reconcile.apply.failure import ApplyFailure
from kvtier_operator.reconcile.facts.condition import UntimedCondition, false_condition, true_condition
from kvtier_operator.reconcile.facts.deployment import DeploymentFacts
from kvtier_operator.reconcile.facts.pod import NotReadyPod
from kvtier_operator.reconcile.status.gateway_pods import GatewayPods, gateway_problem
from kvtier_operator.reconcile.status.not_created import not_created
from kvtier_operator.reconcile.status.rollout import blocking_reason, replica_counts
from kvtier_operator.reconcile.status.route_state import Route, hidden_by_text, route_problem
from kvtier_operator.reconcile.status.unserved_kinds import UnservedKinds

TYPE: Final = "RouterReady"
_WITHOUT: Final = (
    ", or set spec.router.gateway.provider to standalone, which needs none with flavor llm-d or builtin"
)


def router_ready(
    picker: DeploymentFacts | None,
    not_ready: Sequence[NotReadyPod],
    failures: Sequence[ApplyFailure],
    kinds: UnservedKinds,
    way_in: Route | GatewayPods | None = None,
) -> UntimedCondition:
    """The condition by the picker's Deployment, by objects that could not be applied, and by the way in.

    Args:
        picker: The picker's Deployment; None where there is none yet.
        not_ready: Picker pods that are not ready, the most telling first.
        failures: Objects of picker and route that could not be applied.
        kinds: Kinds of desired objects that the cluster does not serve.
        way_in: The resource's route, or kvtier's own gateway; None where there is neither.
    """
    failures = (*failures, *kinds.failures)
    if failures:
        return false_condition(TYPE, failures[0].reason, "; ".join(each.message for each in failures))
    if kinds.missing_crds:
        missing = _missing(kinds.missing_crds, way_in)
        return false_condition(TYPE, "CRDsMissing", missing + _beside(picker, not_ready))
    if picker is None:
        return not_created(TYPE, "the picker's")
    if picker.desired_replicas > 1:
        picker = replace(picker, stalled=False)  # as the standbys are, from ten minutes on, always
    count = replica_counts(picker, "picker pods")
    if not _serves(picker):
        reason, message = blocking_reason(picker, not_ready)
        return false_condition(TYPE, reason, f"{count}; {message}" if message else count)
    count += _standbys(picker, not_ready)
    if trouble := _problem(way_in):
        reason, message = trouble
        return false_condition(TYPE, reason, f"{count}; {message}")
    without = f"; not made, for want of its CRD: {', '.join(kinds.left_out)}" if kinds.left_out else ""
    return true_condition(TYPE, "AllReady", count + _through(way_in) + without)


def _problem(way_in: Route | GatewayPods | None) -> tuple[str, str] | None:
    if isinstance(way_in, Route):
        return route_problem(way_in)
    return gateway_problem(way_in) if way_in else None


def _through(way_in: Route | GatewayPods | None) -> str:
    """How requests come in."""
    if isinstance(way_in, Route):
        hidden = f", but {hidden_by_text(way_in.name, way_in.hidden)}" if way_in.hidden else ""
        return f"; its route is taken by Gateway {way_in.gateways}{hidden}"
    return f"; {way_in.count}" if way_in else ""


def _serves(picker: DeploymentFacts) -> bool:
    """Whether a picker answers: of several, only the leader is ever ready."""
    return picker.has_leader if picker.desired_replicas > 1 else picker.complete


def _standbys(picker: DeploymentFacts, not_ready: Sequence[NotReadyPod]) -> str:
    """What the pods that are not ready do: stand by for the leader, or fail to."""
    if picker.ready_replicas >= picker.desired_replicas:
        return ""
    is_failing = any(each.reason for each in not_ready)
    return (
        f"; {blocking_reason(picker, not_ready)[1]}" if is_failing else ", which leads; the others stand by"
    )


def _beside(picker: DeploymentFacts | None, not_ready: Sequence[NotReadyPod]) -> str:
    """What else keeps picker pods from being ready, so that whoever installs the CRD sees both at once."""
    message = "" if picker is None or _serves(picker) else blocking_reason(picker, not_ready)[1]
    return f"; picker pods: {message}" if message else ""


def _missing(names: Sequence[str], way_in: Route | GatewayPods | None) -> str:
    it = "it" if len(names) == 1 else "them"
    without = "" if isinstance(way_in, GatewayPods) else _WITHOUT
    return (
        f"the cluster does not serve {', '.join(names)}: install {it}, and the rest follows by itself"
        f"{without}; meanwhile the engines answer through their Service"
    )
