"""Which routes are hidden by others, kept up to date as routes come and go.

Whoever may make HTTPRoutes can make thousands with 32 parents and 16 host names each. So no two routes are
ever compared: a route costs a step for each of its listeners and hosts that kvtier's routes ask for, and an
answer one for each of the asking route's hosts.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import product
from operator import attrgetter
from typing import Final

from kvtier_operator.planning.router.route_claims import Claim, Hidden, Listeners

_TURN: Final = attrgetter("turn")


@dataclass(slots=True, eq=False)
class _Asked:
    """One path of one host at one way to name listeners, for which somebody asks; both in turn.

    Attributes:
        asking: Whose requests those are, or some of those.
        taking: Who attaches so, and takes that host's requests.
    """

    asking: list[Claim] = field(default_factory=list)
    taking: list[Claim] = field(default_factory=list)

    @property
    def first(self) -> Claim | None:
        """Who gets the requests."""
        return self.taking[0] if self.taking else None


class RouteOrder:
    """All claims. Only kvtier's routes ask, which name one parent and one path each."""

    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}
        self._asking: set[str] = set()
        self._by_host: dict[str, dict[str, Claim]] = {}
        self._asked: dict[tuple[str, str], dict[Listeners, _Asked]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter([*self._claims])

    def hidden(self, route: str) -> Hidden | None:
        """What hides a route or part of it; None if all that it asks for reaches it, or it does not ask.

        A route that attaches to a listener more than the others gets that one's requests, such as those for
        https beside a route that sends http there.

        Args:
            route: The route, `namespace/name`.
        """
        if route not in self._asking:
            return None
        claim, served = self._claims[route], dict[str, Claim]()
        for host in claim.hosts:
            firsts = (each.first for each in self._asked_by(claim, host))
            first = min(filter(None, firsts), key=_TURN)  # at least itself
            if first.turn < claim.turn:
                served[host] = first
        if not served:
            return None
        by = min(served.values(), key=_TURN)
        hosts = tuple(host for host, first in served.items() if first is by)
        wholly = len(served) == len(claim.hosts)
        return Hidden(by, claim.parent.gateway, hosts, wholly=wholly, path=claim.path)

    def put(
        self, changes: Mapping[str, Claim | None], asking: AbstractSet[str] = frozenset()
    ) -> AbstractSet[str]:
        """Takes routes as they are now.

        Args:
            changes: By route; None for one that is gone or in nobody's way.
            asking: Those of them of which `hidden` is asked; with several parents or paths they are not.

        Returns:
            Routes of which `hidden` may say something else now.
        """
        asks = {
            route
            for route in asking
            if (claim := changes[route]) and len(claim.listeners) == len(claim.paths) == 1
        }
        new = {
            route: claim
            for route, claim in changes.items()
            if self._claims.get(route) != claim or (route in asks) != (route in self._asking)
        }
        touched = {
            each: each.first
            for route, claim in new.items()
            for each in (*self._taken_by(self._claims.get(route)), *self._taken_by(claim))
        }
        before = {route: self.hidden(route) for route in new}
        for route, claim in new.items():
            self._remove(route)
            if claim is not None:
                self._add(claim, asks=route in asks)
        changed = {route for route, what in before.items() if self.hidden(route) != what}
        for each, first in touched.items():
            changed.update(claim.route for claim in _behind(each, first))
        return changed

    def _taken_by(self, claim: Claim | None) -> Iterator[_Asked]:
        """All for which somebody asks of what a claim takes."""
        if claim is not None:
            for place in product(claim.hosts, claim.paths):
                if asked := self._asked.get(place):
                    yield from (asked[each] for each in claim.listeners if each in asked)

    def _asked_by(self, claim: Claim, host: str) -> Iterator[_Asked]:
        asked = self._asked[host, claim.path]
        return (asked[each] for each in claim.parent.covering)

    def _add(self, claim: Claim, *, asks: bool) -> None:
        self._claims[claim.route] = claim
        for host in claim.hosts:
            self._by_host.setdefault(host, {})[claim.route] = claim
        for each in self._taken_by(claim):
            insort(each.taking, claim, key=_TURN)
        if not asks:
            return
        self._asking.add(claim.route)
        for host in claim.hosts:
            asked = self._asked.setdefault((host, claim.path), {})
            for listeners in claim.parent.covering:
                if listeners not in asked:
                    taking = [
                        each
                        for each in self._by_host[host].values()
                        if listeners in each.listeners and claim.path in each.paths
                    ]
                    asked[listeners] = _Asked(taking=sorted(taking, key=_TURN))
                insort(asked[listeners].asking, claim, key=_TURN)

    def _remove(self, route: str) -> None:
        claim = self._claims.pop(route, None)
        if claim is None:
            return
        for each in self._taken_by(claim):
            _take_out(each.taking, claim)
        for host in claim.hosts:
            del self._by_host[host][route]
            if not self._by_host[host]:
                del self._by_host[host]
        if route in self._asking:
            self._asking.remove(route)
            self._ask_no_more(claim)

    def _ask_no_more(self, claim: Claim) -> None:
        for host in claim.hosts:
            asked = self._asked[host, claim.path]
            for listeners in claim.parent.covering:
                _take_out(asked[listeners].asking, claim)
                if not asked[listeners].asking:
                    del asked[listeners]
            if not asked:
                del self._asked[host, claim.path]


def _take_out(claims: list[Claim], claim: Claim) -> None:
    del claims[bisect_left(claims, claim.turn, key=_TURN)]


def _behind(asked: _Asked, before: Claim | None) -> list[Claim]:
    """Who asks for something that another one got before than gets it now."""
    turns = {each.turn if each else None for each in (before, asked.first)}
    if len(turns) == 1:
        return []
    since = min(filter(None, turns))
    return asked.asking[bisect_right(asked.asking, since, key=_TURN) :]
