"""What keeps requests from reaching a route: part of RouterReady."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_operator.planning.router.route_order import Hidden
from kvtier_operator.reconcile.facts.gateway_parents import ParentAnswer, ParentFacts

_ADVICE: Final[Mapping[str, str]] = {
    "NotAllowedByListeners": "allow routes of this namespace in the Gateway's listeners (allowedRoutes)",
    "NoMatchingListenerHostname": "give spec.router.gateway.hostnames that a listener of the Gateway has",
    "NoMatchingParent": "name a listener that the Gateway has in spec.router.gateway.parentRef.sectionName",
    "InvalidKind": "use a Gateway whose implementation takes InferencePools, and have it take them",
}
"""By the controllers' reasons (Gateway API v1, apis/v1/shared_types.go)."""


@dataclass(frozen=True, slots=True)
class Route:
    """The live route of a resource.

    Attributes:
        name: Name of the HTTPRoute and of the InferencePool behind it, `namespace/name`.
        parents: What Gateways report of the HTTPRoute.
        pool_parents: What Gateways report of the InferencePool.
        hidden: Another route that gets its requests; None where none does.
    """

    name: str
    parents: Sequence[ParentFacts]
    pool_parents: Sequence[ParentFacts] = ()
    hidden: Hidden | None = None

    @property
    def gateways(self) -> str:
        """Names of its Gateways."""
        return ", ".join(dict.fromkeys(each.listeners.gateway for each in self.parents))


def route_problem(route: Route) -> tuple[str, str] | None:
    """Reason and message of the first thing that keeps requests from it; None where nothing does."""
    for parent in route.parents:
        if parent.answer is ParentAnswer.UNANSWERED:
            return "RouteUnanswered", _unanswered(route.name, parent.listeners.gateway)
        if found := _trouble("RouteRefused", f"HTTPRoute {route.name}", parent):
            return found
    gateways = {each.listeners.gateway for each in route.parents}
    for parent in route.pool_parents:
        if parent.listeners.gateway in gateways and (
            found := _trouble("PoolRefused", f"InferencePool {route.name}", parent)
        ):
            return found
    if route.hidden and route.hidden.wholly:
        return "RouteHidden", hidden_by_text(route.name, route.hidden)
    return None


def _trouble(refused: str, name: str, parent: ParentFacts) -> tuple[str, str] | None:
    gateway, message = parent.listeners.gateway, parent.message
    if parent.answer is ParentAnswer.PENDING:
        waits = f"Gateway {gateway} has yet to look at {name} as it is now"
        return "Progressing", f"{waits}: {message}" if message else waits
    if parent.answer is ParentAnswer.REJECTED:
        advice = _ADVICE.get(parent.reason, "")
        return refused, f"Gateway {gateway} on {name}: {message}" + (f"; {advice}" if advice else "")
    return None


def _unanswered(name: str, gateway: str) -> str:
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
