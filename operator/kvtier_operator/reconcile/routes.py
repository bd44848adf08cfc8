"""The HTTPRoutes that the operator may see, whoever made them, and which of them hide others."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from typing import Any, Final

from kvtier_operator.planning.objects.names import MANAGED_BY, MANAGED_BY_LABEL
from kvtier_operator.planning.route_claims import Claim, Hidden, claim_of, hidden
from kvtier_operator.reconcile.children import KindSink
from kvtier_operator.reconcile.facts.parents import route_parents
from kvtier_operator.reconcile.reflector import Place

_TURN: Final = attrgetter("turn")


class Routes:
    """What routes ask for, by Gateway and host name; of one that is in nobody's way nothing is kept.

    `changed` is called with namespace and name of a route that is hidden from now on, no longer, or by
    another one; kvtier's routes are called as their resources.
    """

    def __init__(self, changed: Callable[[str, str], None]) -> None:
        self._changed = changed
        self._claims: dict[str, Claim] = {}
        self._in_turn: dict[tuple[str, str], list[Claim]] = {}

    def hidden_by(self, namespace: str, name: str) -> Hidden | None:
        """What hides a route; None if nothing does."""
        claim = self._claims.get(f"{namespace}/{name}")
        return None if claim is None else self._hidden(claim)

    def seen(self, document: Mapping[str, Any]) -> None:
        """Takes a route from a list or a watch."""
        refused = frozenset(each.listeners for each in route_parents(document) if not each.attached)
        self._put(_name(document), claim_of(document, refused))

    def gone(self, document: Mapping[str, Any]) -> None:
        """A route is no longer there."""
        self._put(_name(document), None)

    def only(self, namespace: str | None, places: set[Place]) -> None:
        """A list (of a namespace, or of all) is complete: other routes are gone."""
        there = {f"{place[0]}/{place[1]}" for place in places}
        for route in [*self._claims]:
            if route not in there and namespace in (None, route.partition("/")[0]):
                self._put(route, None)

    def _put(self, route: str, new: Claim | None) -> None:
        old = self._claims.get(route)
        if old == new:
            return
        before = {each.route: self._hidden(each) for each in (*self._behind(old), *self._behind(new))}
        if old is not None:
            self._remove(old)
        if new is not None:
            self._add(new)
        for each in before.keys() | {route}:
            if self.hidden_by(*each.split("/", 1)) != before.get(each):
                self._changed(*each.split("/", 1))

    def _hidden(self, claim: Claim) -> Hidden | None:
        in_turn = (self._in_turn[key] for key in _keys(claim))
        return hidden(claim, merge(*in_turn, key=_TURN))

    def _behind(self, claim: Claim | None) -> Iterator[Claim]:
        """The claims that this one may hide."""
        for key in _keys(claim) if claim else ():
            claims = self._in_turn.get(key, [])
            yield from claims[bisect_left(claims, claim.turn, key=_TURN) :]  # type: ignore[union-attr] # as above

    def _add(self, claim: Claim) -> None:
        self._claims[claim.route] = claim
        for key in _keys(claim):
            insort(self._in_turn.setdefault(key, []), claim, key=_TURN)

    def _remove(self, claim: Claim) -> None:
        del self._claims[claim.route]
        for key in _keys(claim):
            self._in_turn[key].remove(claim)
            if not self._in_turn[key]:
                del self._in_turn[key]


@dataclass(frozen=True, slots=True)
class RouteSink:
    """Takes what one reflector sees of all HTTPRoutes; those with kvtier's label are children too."""

    children: KindSink
    routes: Routes

    def seen(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        labels = document["metadata"].get("labels", {})
        if labels.get(MANAGED_BY_LABEL) == MANAGED_BY:
            self.children.seen(document)
        else:
            self.children.gone(document)  # as a watch by label would tell of one that lost it
        self.routes.seen(document)

    def gone(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        self.children.gone(document)
        self.routes.gone(document)

    def only(self, places: set[Place], version: int) -> None:
        """As reflector.Sink."""
        self.children.only(places, version)
        self.routes.only(self.children.namespace, places)


def _name(document: Mapping[str, Any]) -> str:
    return f"{document['metadata'].get('namespace', '')}/{document['metadata']['name']}"


def _keys(claim: Claim) -> set[tuple[str, str]]:
    return {(each.gateway, host) for each in claim.listeners for host in claim.hosts}
