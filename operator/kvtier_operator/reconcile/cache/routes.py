"""The HTTPRoutes that the operator may list, whoever made them, and which of them hide others."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from kvtier_common.kubernetes.documents import Place
from kvtier_operator.planning.base.names import MANAGED_BY, MANAGED_BY_LABEL
from kvtier_operator.planning.router.route_order import Claim, Hidden, RouteOrder, claim_of
from kvtier_operator.reconcile.cache.live_objects import KindSink
from kvtier_operator.reconcile.facts.gateway_parents import route_parents


class RouteCache:
    """What routes claim, by Gateway and host name; nothing is kept of a route that hides no other.

    `changed` is called with namespace and name of one of kvtier's routes, which its resource has too, when it
    may be hidden from now on, no longer, or by another route.
    """

    def __init__(self, changed: Callable[[str, str], None]) -> None:
        self._changed = changed
        self._order = RouteOrder()

    def hidden_by(self, namespace: str, name: str) -> Hidden | None:
        """What hides a route of kvtier's; None if nothing does."""
        return self._order.hidden(f"{namespace}/{name}")

    def upsert(self, document: Mapping[str, Any], *, ours: bool) -> None:
        """Takes a route from a list or a watch."""
        refused = frozenset(each.listeners for each in route_parents(document) if not each.attached)
        route = _name(document)
        self._put({route: claim_of(document, refused, ours=ours)}, {route} if ours else frozenset())

    def delete(self, document: Mapping[str, Any]) -> None:
        """A route is no longer there."""
        self._put({_name(document): None})

    def replace(self, namespace: str | None, places: set[Place]) -> None:
        """A list (of a namespace, or of all) is complete: other routes are gone."""
        there = {f"{place[0]}/{place[1]}" for place in places}
        here = (route for route in self._order if namespace in (None, route.partition("/")[0]))
        self._put({route: None for route in here if route not in there})

    def _put(self, changes: Mapping[str, Claim | None], asking: AbstractSet[str] = frozenset()) -> None:
        for route in self._order.put(changes, asking):
            self._changed(*route.split("/", 1))


@dataclass(frozen=True, slots=True)
class RouteSink:
    """The sink of the HTTPRoutes' reflector; those with kvtier's label are live objects too."""

    live_objects: KindSink
    routes: RouteCache

    def upsert(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        labels = document["metadata"].get("labels", {})
        ours = labels.get(MANAGED_BY_LABEL) == MANAGED_BY
        if ours:
            self.live_objects.upsert(document)
        else:
            self.live_objects.delete(document)  # as a watch by label would tell of one that lost it
        self.routes.upsert(document, ours=ours)

    def delete(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        self.live_objects.delete(document)
        self.routes.delete(document)

    def replace(self, places: set[Place], version: int) -> None:
        """As reflector.Sink."""
        self.live_objects.replace(places, version)
        self.routes.replace(self.live_objects.namespace, places)


def _name(document: Mapping[str, Any]) -> str:
    return f"{document['metadata'].get('namespace', '')}/{document['metadata']['name']}"
