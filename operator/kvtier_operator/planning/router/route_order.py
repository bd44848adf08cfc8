"""What HTTPRoutes ask for, and which are hidden by others, kept up to date as routes come and go.

Source: Gateway API v1, apis/v1/httproute_types.go, `hostnames` and `matches`: the more specific host name
goes first, then the more specific match, then the older route, then the first one by `namespace/name`. So
only routes that say the very same host name and the very same path are in each other's way.

Whoever may make HTTPRoutes can make thousands with 32 parents and 16 host names each. So no two routes are
ever compared: a route costs a step for each of its listeners and hosts that kvtier's routes ask for, and an
answer one for each of the asking route's hosts.
"""

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import product
from operator import attrgetter
from typing import Any, Final, NamedTuple

from kvtier_operator.planning.router.engine_routes import CHAT, EVERY_PATH

EVERY_HOST: Final = "*"
"""Stands for the host names of a route that has none."""
_OWN_PATH: Final = re.compile(rf"(/[^/]{{1,63}}/[^/]{{1,63}})?({CHAT})?")
"""A path that every route of kvtier's has: CHAT, below its resource's namespace and name or not; those alone
where a gateway passes all that is below them."""
_GROUP: Final = "gateway.networking.k8s.io"
_ANYTHING: Final[tuple[Mapping[str, Any], ...]] = ({},)
_MORE_SPECIFIC: Final = ("method", "headers", "queryParams")
_TURN: Final = attrgetter("turn")


class Listeners(NamedTuple):
    """What a route attaches to."""

    gateway: str  # the Gateway, `namespace/name`
    section: str = ""  # name of its listener; empty for all
    port: int = 0  # port of its listeners; 0 for all

    @property
    def covering(self) -> frozenset["Listeners"]:
        """Every way to name listeners so that all of these are among them."""
        return frozenset(
            Listeners(self.gateway, section, port)
            for section in ("", self.section)
            for port in (0, self.port)
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """A route that takes all of a path, as kvtier's do."""

    created: str  # when the route was made, RFC 3339 in UTC
    route: str  # the route, `namespace/name`
    listeners: frozenset[Listeners]  # where it attaches; at least to one
    hosts: tuple[str, ...]  # its host names, each once; EVERY_HOST where it has none
    # of which paths it takes all requests, of those that kvtier's routes can have; at least one
    paths: frozenset[str] = frozenset({EVERY_PATH})

    @property
    def turn(self) -> tuple[str, str]:
        """What decides between equals: the lower one is served."""
        return self.created, self.route

    @property
    def parent(self) -> Listeners:
        """Where a route attaches that names one parent."""
        (parent,) = self.listeners
        return parent

    @property
    def path(self) -> str:
        """What a route takes that takes one path."""
        (path,) = self.paths
        return path


@dataclass(frozen=True, slots=True)
class Hidden:
    """Why requests do not reach a route."""

    by: Claim  # the route that gets them
    gateway: str  # on which Gateway
    hosts: tuple[str, ...]  # requests for which hosts
    wholly: bool  # whether others get all that the route asks for
    path: str = EVERY_PATH  # requests below which path

    @property
    def requests(self) -> str:
        """Which requests, in words."""
        below = "" if self.path == EVERY_PATH else f"below {self.path} "
        return (
            f"all requests {below}for {'every host' if EVERY_HOST in self.hosts else ', '.join(self.hosts)}"
        )


def claim_of(
    document: Mapping[str, Any], refused: AbstractSet[Listeners] = frozenset(), *, ours: bool = False
) -> Claim | None:
    """What an HTTPRoute asks for; None for one that is in nobody's way.

    Args:
        document: The route.
        refused: Listeners that do not take it.
        ours: Whether kvtier made it, so that one path of it stands for all.
    """
    metadata, spec = document["metadata"], document["spec"]
    namespace = metadata.get("namespace", "")
    wanted = (listeners_of(parent, namespace) for parent in spec.get("parentRefs") or ())
    listeners = frozenset(name for name in wanted if name is not None and name not in refused)
    matches = (match for rule in spec.get("rules") or _ANYTHING for match in rule.get("matches") or _ANYTHING)
    paths = frozenset(path for match in matches if (path := _path(match)))
    if ours:
        paths = frozenset(sorted(paths, key=_stands_for_all)[:1])
    if not listeners or not paths:
        return None
    return Claim(
        created=metadata.get("creationTimestamp") or "",
        route=f"{namespace}/{metadata['name']}",
        listeners=listeners,
        hosts=tuple(dict.fromkeys(spec.get("hostnames") or (EVERY_HOST,))),
        paths=paths,
    )


def listeners_of(parent: Mapping[str, Any], namespace: str) -> Listeners | None:
    """What a `parentRef` names; None where that is no Gateway.

    Args:
        parent: The reference.
        namespace: Of the object that it stands in.
    """
    is_gateway = parent.get("group", _GROUP) == _GROUP and parent.get("kind", "Gateway") == "Gateway"
    if not is_gateway or not parent.get("name"):
        return None
    return Listeners(
        gateway=f"{parent.get('namespace') or namespace}/{parent['name']}",
        section=parent.get("sectionName") or "",
        port=parent.get("port") or 0,
    )


def _stands_for_all(path: str) -> tuple[bool, bool, bool, str]:
    """What comes first does, of the paths of a route of kvtier's."""
    return path != EVERY_PATH, path != CHAT, not path.endswith(CHAT), path


def _path(match: Mapping[str, Any]) -> str:
    """The path of which a match takes all requests; empty for one that cannot be in kvtier's way."""
    path = match.get("path") or {}
    if path.get("type", "PathPrefix") != "PathPrefix" or any(match.get(name) for name in _MORE_SPECIFIC):
        return ""
    # with or without a slash at its end it is the same (Gateway API, PathMatchPathPrefix)
    value = path.get("value", "/").rstrip("/") or EVERY_PATH
    return value if value == EVERY_PATH or _OWN_PATH.fullmatch(value) else ""


@dataclass(slots=True, eq=False)
class _Slot:
    """One path of one host at one way to name listeners, for which somebody asks; both in turn."""

    askers: list[Claim] = field(default_factory=list)  # whose requests those are, or some of those
    takers: list[Claim] = field(default_factory=list)  # who attaches so, and takes that host's requests

    @property
    def first(self) -> Claim | None:
        """Who gets the requests."""
        return self.takers[0] if self.takers else None


class RouteOrder:
    """All claims. Only kvtier's routes ask, which name one parent and one path each."""

    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}
        self._asking: set[str] = set()
        self._by_host: dict[str, dict[str, Claim]] = {}
        self._slots: dict[tuple[str, str], dict[Listeners, _Slot]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter([*self._claims])

    def find_hidden(self, route: str) -> Hidden | None:
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
            firsts = (slot.first for slot in self._slots_of(claim, host))
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
            asking: Those of them of which `find_hidden` is asked; with several parents or paths they are not.

        Returns:
            Routes of which `find_hidden` may say something else now.
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
            slot: slot.first
            for route, claim in new.items()
            for slot in (*self._slots_taken_by(self._claims.get(route)), *self._slots_taken_by(claim))
        }
        before = {route: self.find_hidden(route) for route in new}
        for route, claim in new.items():
            self._remove(route)
            if claim is not None:
                self._add(claim, asks=route in asks)
        changed = {route for route, what in before.items() if self.find_hidden(route) != what}
        for slot, first in touched.items():
            changed.update(claim.route for claim in _behind(slot, first))
        return changed

    def _slots_taken_by(self, claim: Claim | None) -> Iterator[_Slot]:
        """All for which somebody asks of what a claim takes."""
        if claim is not None:
            for place in product(claim.hosts, claim.paths):
                if slots := self._slots.get(place):
                    yield from (slots[name] for name in claim.listeners if name in slots)

    def _slots_of(self, claim: Claim, host: str) -> Iterator[_Slot]:
        slots = self._slots[host, claim.path]
        return (slots[name] for name in claim.parent.covering)

    def _add(self, claim: Claim, *, asks: bool) -> None:
        self._claims[claim.route] = claim
        for host in claim.hosts:
            self._by_host.setdefault(host, {})[claim.route] = claim
        for slot in self._slots_taken_by(claim):
            insort(slot.takers, claim, key=_TURN)
        if not asks:
            return
        self._asking.add(claim.route)
        for host in claim.hosts:
            slots = self._slots.setdefault((host, claim.path), {})
            for listeners in claim.parent.covering:
                if listeners not in slots:
                    takers = [
                        other
                        for other in self._by_host[host].values()
                        if listeners in other.listeners and claim.path in other.paths
                    ]
                    slots[listeners] = _Slot(takers=sorted(takers, key=_TURN))
                insort(slots[listeners].askers, claim, key=_TURN)

    def _remove(self, route: str) -> None:
        claim = self._claims.pop(route, None)
        if claim is None:
            return
        for slot in self._slots_taken_by(claim):
            _take_out(slot.takers, claim)
        for host in claim.hosts:
            del self._by_host[host][route]
            if not self._by_host[host]:
                del self._by_host[host]
        if route in self._asking:
            self._asking.remove(route)
            self._stop_asking(claim)

    def _stop_asking(self, claim: Claim) -> None:
        for host in claim.hosts:
            slots = self._slots[host, claim.path]
            for listeners in claim.parent.covering:
                _take_out(slots[listeners].askers, claim)
                if not slots[listeners].askers:
                    del slots[listeners]
            if not slots:
                del self._slots[host, claim.path]


def _take_out(claims: list[Claim], claim: Claim) -> None:
    del claims[bisect_left(claims, claim.turn, key=_TURN)]


def _behind(slot: _Slot, before: Claim | None) -> list[Claim]:
    """Who asks for something that another one got before than gets it now."""
    turns = {claim.turn if claim else None for claim in (before, slot.first)}
    if len(turns) == 1:
        return []
    since = min(filter(None, turns))
    return slot.askers[bisect_right(slot.askers, since, key=_TURN) :]
