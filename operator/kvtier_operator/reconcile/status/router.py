"""RouterReady: whether requests reach the engines through the picker."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kvtier_operator.planning.base.names import Component
from kvtier_operator.planning.router.route_order import Hidden
from kvtier_operator.reconcile.api_server import AUTOSCALERS, Kind
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.cache.pods import NotReadyPod
from kvtier_operator.reconcile.facts.cached_plan import UntimedCondition, false_condition, true_condition
from kvtier_operator.reconcile.facts.objects import DeploymentFacts, ParentAnswer, ParentFacts
from kvtier_operator.reconcile.status.engines import (
    NOT_CREATED,
    blocking_reason,
    not_created_condition,
    replica_counts,
)

_MONITORING = "monitoring"
_ROUTE_ADVICE: Final[Mapping[str, str]] = {
    "NotAllowedByListeners": "allow routes of this namespace in the Gateway's listeners (allowedRoutes)",
    "NoMatchingListenerHostname": "give spec.router.gateway.hostnames that a listener of the Gateway has",
    "NoMatchingParent": "name a listener that the Gateway has in spec.router.gateway.parentRef.sectionName",
    "InvalidKind": "use a Gateway whose implementation takes InferencePools, and have it take them",
}
"""By the controllers' reasons (Gateway API v1, apis/v1/shared_types.go)."""
ROUTER_READY: Final = "RouterReady"
_WITHOUT: Final = (
    ", or set spec.router.gateway.provider to standalone, which needs none with flavor llm-d or builtin"
)


@dataclass(frozen=True, slots=True)
class UnservedKinds:
    """Kinds of desired objects that the cluster does not serve."""

    missing_crds: tuple[str, ...] = ()  # CRDs that the router needs
    left_out: tuple[str, ...] = ()  # CRDs that it works without, such as a ServiceMonitor's
    failures: tuple[ApplyFailure, ...] = ()  # kinds of the router's that the operator may not list
    scaler_failures: tuple[ApplyFailure, ...] = ()  # the same of autoscalers


def unserved_kinds(
    kinds: Iterable[Kind], why_not: Callable[[str], str], not_installed: str = "not installed"
) -> UnservedKinds:
    """Sorts the kinds that are not served by what that means."""
    reasons = {kind: why_not(kind.kind) for kind in kinds}
    absent = [kind for kind, why in reasons.items() if why == not_installed]
    failures = [
        ApplyFailure(
            Component.AUTOSCALER if kind.kind in AUTOSCALERS else Component.ROUTER,
            "Forbidden",
            f"{kind.kind} cannot be made: {why}",
        )
        for kind, why in reasons.items()
        if why and why != not_installed and not _is_extra(kind)
    ]
    return UnservedKinds(
        missing_crds=tuple(kind.crd for kind in absent if not _is_extra(kind)),
        left_out=tuple(kind.crd for kind in absent if _is_extra(kind)),
        failures=tuple(failure for failure in failures if failure.component is Component.ROUTER),
        scaler_failures=tuple(failure for failure in failures if failure.component is Component.AUTOSCALER),
    )


def _is_extra(kind: Kind) -> bool:
    return _MONITORING in kind.api_version


@dataclass(frozen=True, slots=True)
class GatewayPods:
    """A gateway that there is or should be."""

    deployment: DeploymentFacts | None
    not_ready: Sequence[NotReadyPod] = ()

    @property
    def state(self) -> str:
        """How many of its pods are ready."""
        return replica_counts(self.deployment, "gateway pods") if self.deployment else ""

    @property
    def problem(self) -> tuple[str, str] | None:
        """Reason and message of what keeps it from answering; None where nothing does."""
        if self.deployment is None:
            return NOT_CREATED, "the gateway's Deployment is not there"
        if self.deployment.complete:
            return None
        reason, message = blocking_reason(self.deployment, self.not_ready)
        return reason, f"{self.state}; {message}" if message else self.state


@dataclass(frozen=True, slots=True)
class Route:
    """The live route of a resource."""

    name: str  # name of the HTTPRoute and of the InferencePool behind it, `namespace/name`
    parents: Sequence[ParentFacts]  # what Gateways report of the HTTPRoute
    pool_parents: Sequence[ParentFacts] = ()  # what Gateways report of the InferencePool
    hidden: Hidden | None = None  # another route that gets its requests; None where none does

    @property
    def state(self) -> str:
        """Which Gateways take it, and what of its requests another route gets."""
        gateways = ", ".join(dict.fromkeys(parent.listeners.gateway for parent in self.parents))
        hidden = f", but {hidden_by_text(self.name, self.hidden)}" if self.hidden else ""
        return f"its route is taken by Gateway {gateways}{hidden}"

    @property
    def problem(self) -> tuple[str, str] | None:
        """Reason and message of the first thing that keeps requests from it; None where nothing does."""
        for parent in self.parents:
            if parent.answer is ParentAnswer.UNANSWERED:
                return "RouteUnanswered", _no_answer_text(self.name, parent.listeners.gateway)
            if problem := _trouble("RouteRefused", f"HTTPRoute {self.name}", parent):
                return problem
        gateways = {parent.listeners.gateway for parent in self.parents}
        for parent in self.pool_parents:
            if parent.listeners.gateway in gateways and (
                problem := _trouble("PoolRefused", f"InferencePool {self.name}", parent)
            ):
                return problem
        if self.hidden and self.hidden.wholly:
            return "RouteHidden", hidden_by_text(self.name, self.hidden)
        return None


def _trouble(refused: str, name: str, parent: ParentFacts) -> tuple[str, str] | None:
    gateway, message = parent.listeners.gateway, parent.message
    if parent.answer is ParentAnswer.PENDING:
        waits = f"Gateway {gateway} has yet to look at {name} as it is now"
        return "Progressing", f"{waits}: {message}" if message else waits
    if parent.answer is ParentAnswer.REJECTED:
        advice = _ROUTE_ADVICE.get(parent.reason, "")
        return refused, f"Gateway {gateway} on {name}: {message}" + (f"; {advice}" if advice else "")
    return None


def _no_answer_text(name: str, gateway: str) -> str:
    namespace, gateway_name = gateway.split("/", 1)
    return (
        f"no controller has said anything of HTTPRoute {name} on Gateway {gateway}: see whether that Gateway "
        f"is there and a controller serves its class: kubectl get gateway -n {namespace} {gateway_name}"
    )


def hidden_by_text(name: str, by: Hidden) -> str:
    """Which of a route's requests another route gets; a route of another namespace is not named."""
    here = by.by.route.partition("/")[0] == name.partition("/")[0]
    other = f"HTTPRoute {by.by.route}" if here else "an HTTPRoute of another namespace"
    return (
        f"on Gateway {by.gateway} {by.requests} go to {other}, which comes first by age or "
        f"name, and none to HTTPRoute {name}: give them different "
        "spec.router.gateway.hostnames, or one of them spec.router.gateway.ownPath"
    )


def router_ready_condition(
    picker: DeploymentFacts | None,
    not_ready: Sequence[NotReadyPod],
    failures: Sequence[ApplyFailure],
    kinds: UnservedKinds,
    way_in: Route | GatewayPods | None = None,
) -> UntimedCondition:
    """The condition by the picker's Deployment, by objects that could not be applied, and by the way in."""
    failures = (*failures, *kinds.failures)
    if failures:
        return false_condition(
            ROUTER_READY, failures[0].reason, "; ".join(failure.message for failure in failures)
        )
    if kinds.missing_crds:
        missing = _missing_kinds_text(kinds.missing_crds, way_in)
        return false_condition(ROUTER_READY, "CRDsMissing", missing + _beside(picker, not_ready))
    if picker is None:
        return not_created_condition(ROUTER_READY, "the picker's")
    if picker.desired_replicas > 1:
        picker = replace(picker, stalled=False)  # as the standbys are, from ten minutes on, always
    count = replica_counts(picker, "picker pods")
    if not _serves(picker):
        reason, message = blocking_reason(picker, not_ready)
        return false_condition(ROUTER_READY, reason, f"{count}; {message}" if message else count)
    count += _standbys(picker, not_ready)
    if way_in and (problem := way_in.problem):
        reason, message = problem
        return false_condition(ROUTER_READY, reason, f"{count}; {message}")
    without = f"; not made, for want of its CRD: {', '.join(kinds.left_out)}" if kinds.left_out else ""
    return true_condition(ROUTER_READY, "AllReady", count + (f"; {way_in.state}" if way_in else "") + without)


def _serves(picker: DeploymentFacts) -> bool:
    """Whether a picker answers: of several, only the leader is ever ready."""
    return picker.has_leader if picker.desired_replicas > 1 else picker.complete


def _standbys(picker: DeploymentFacts, not_ready: Sequence[NotReadyPod]) -> str:
    """What the pods that are not ready do: stand by for the leader, or fail to."""
    if picker.ready_replicas >= picker.desired_replicas:
        return ""
    is_failing = any(pod.reason for pod in not_ready)
    return (
        f"; {blocking_reason(picker, not_ready)[1]}" if is_failing else ", which leads; the others stand by"
    )


def _beside(picker: DeploymentFacts | None, not_ready: Sequence[NotReadyPod]) -> str:
    """What else keeps picker pods from being ready, so that whoever installs the CRD sees both at once."""
    message = "" if picker is None or _serves(picker) else blocking_reason(picker, not_ready)[1]
    return f"; picker pods: {message}" if message else ""


def _missing_kinds_text(names: Sequence[str], way_in: Route | GatewayPods | None) -> str:
    it = "it" if len(names) == 1 else "them"
    without = "" if isinstance(way_in, GatewayPods) else _WITHOUT
    return (
        f"the cluster does not serve {', '.join(names)}: install {it}, and the rest follows by itself"
        f"{without}; meanwhile the engines answer through their Service"
    )
