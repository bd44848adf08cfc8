"""What keeps requests from a route: part of RouterReady."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_operator.planning.router.route_claims import Hidden
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
    """A resource's route as the cluster has it.

    Attributes:
        name: The HTTPRoute, and the InferencePool that it sends to, `namespace/name`.
        parents: What its Gateway says of the HTTPRoute.
        pool_parents: What Gateways say of the InferencePool.
        hidden: Another route that gets its requests.
    """

    name: str
    parents: Sequence[ParentFacts]
    pool_parents: Sequence[ParentFacts] = ()
    hidden: Hidden | None = None

    @property
    def gateways(self) -> str:
        """Names of its Gateways."""
        return ", ".join(dict.fromkeys(each.listeners.gateway for each in self.parents))


def route_trouble(route: Route) -> tuple[str, str] | None:
    """Reason and words for the first thing that keeps requests from it; None if nothing does."""
    for parent in route.parents:
        if parent.answer is ParentAnswer.NONE:
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
        return "RouteHidden", hidden_words(route.name, route.hidden)
    return None


def _trouble(refused: str, name: str, parent: ParentFacts) -> tuple[str, str] | None:
    gateway, said = parent.listeners.gateway, parent.said
    if parent.answer is ParentAnswer.WAITING:
        waits = f"Gateway {gateway} has yet to look at {name} as it is now"
        return "Progressing", f"{waits}: {said}" if said else waits
    if parent.answer is ParentAnswer.REFUSED:
        advice = _ADVICE.get(parent.reason, "")
        return refused, f"Gateway {gateway} on {name}: {said}" + (f"; {advice}" if advice else "")
    return None


def _unanswered(name: str, gateway: str) -> str:
    namespace, gateway_name = gateway.split("/", 1)
    return (
        f"no controller has said anything of HTTPRoute {name} on Gateway {gateway}: see whether that Gateway "
        f"is there and a controller serves its class: kubectl get gateway -n {namespace} {gateway_name}"
    )


def hidden_words(name: str, by: Hidden) -> str:
    """Which of a route's requests go elsewhere; what another namespace has there is not said."""
    here = by.by.route.partition("/")[0] == name.partition("/")[0]
    other = f"HTTPRoute {by.by.route}" if here else "an HTTPRoute of another namespace"
    return (
        f"on Gateway {by.gateway} {by.requests} go to {other}, which comes first by age or "
        f"name, and none to HTTPRoute {name}: give them different "
        "spec.router.gateway.hostnames, or one of them spec.router.gateway.ownPath"
    )
