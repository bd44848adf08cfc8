"""Which of several HTTPRoutes on one Gateway is served where they ask for the same requests.

Source: Gateway API v1, apis/v1/httproute_types.go, `hostnames` and `matches`: the more specific host name
goes first, then the more specific match, then the older route, then the first one by `namespace/name`. So
only routes that say the very same host name, and both take every path, are in each other's way.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

EVERY_HOST: Final = "*"
"""Stands for the host names of a route that has none."""
_GROUP: Final = "gateway.networking.k8s.io"
_MORE_SPECIFIC: Final = ("method", "headers", "queryParams")


@dataclass(frozen=True, slots=True)
class Listeners:
    """What a route attaches to.

    Attributes:
        gateway: The Gateway, `namespace/name`.
        section: Name of its listener; empty for all.
        port: Port of its listeners; 0 for all.
    """

    gateway: str
    section: str = ""
    port: int = 0

    def cover(self, other: "Listeners") -> bool:
        """Whether all that another one names are among these."""
        return (
            self.gateway == other.gateway
            and self.section in ("", other.section)
            and self.port in (0, other.port)
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """A route that takes every path, as kvtier's do.

    Attributes:
        created: When the route was made, RFC 3339 in UTC.
        route: The route, `namespace/name`.
        listeners: Where it attaches.
        hosts: Its host names; EVERY_HOST where it has none.
    """

    created: str
    route: str
    listeners: tuple[Listeners, ...]
    hosts: tuple[str, ...]

    @property
    def turn(self) -> tuple[str, str]:
        """What decides between equals: the lower one is served."""
        return self.created, self.route

    def cover(self, other: "Claim") -> bool:
        """Whether it attaches wherever another one does."""
        return all(any(mine.cover(theirs) for mine in self.listeners) for theirs in other.listeners)


@dataclass(frozen=True, slots=True)
class Hidden:
    """Why requests do not reach a route.

    Attributes:
        by: The route that gets them.
        gateway: On which Gateway.
        hosts: Requests for which hosts.
        wholly: Whether others get all that the route asks for.
    """

    by: Claim
    gateway: str
    hosts: tuple[str, ...]
    wholly: bool

    @property
    def requests(self) -> str:
        """Which requests, in words."""
        return f"all requests for {'every host' if EVERY_HOST in self.hosts else ', '.join(self.hosts)}"


def hidden(claim: Claim, in_turn: Iterable[Claim]) -> Hidden | None:
    """What hides a route or part of it; None if all that it asks for reaches it.

    A route that attaches to a listener more than the others gets that one's requests, such as those for https
    beside a route that sends http there.

    Args:
        claim: What it asks for.
        in_turn: What there is, itself too, sorted by `turn`.
    """
    left, found = {*claim.hosts}, list[tuple[Claim, tuple[str, ...]]]()
    for other in in_turn:
        if not left or other.turn >= claim.turn:
            break
        hosts = tuple(host for host in claim.hosts if host in left and host in other.hosts)
        if hosts and other.cover(claim):
            found.append((other, hosts))
            left -= {*hosts}
    if not found:
        return None
    by, hosts = found[0]
    return Hidden(by, claim.listeners[0].gateway, hosts, wholly=not left)


def claim_of(document: Mapping[str, Any], refused: AbstractSet[Listeners] = frozenset()) -> Claim | None:
    """What an HTTPRoute asks for; None for one that is in nobody's way.

    Args:
        document: The route.
        refused: Listeners that do not take it.
    """
    metadata, spec = document["metadata"], document["spec"]
    namespace = metadata.get("namespace", "")
    wanted = (listeners_of(each, namespace) for each in spec.get("parentRefs") or ())
    listeners = tuple(each for each in wanted if each is not None and each not in refused)
    if not listeners or not any(map(_takes_every_path, spec.get("rules") or ({},))):
        return None
    return Claim(
        created=metadata.get("creationTimestamp") or "",
        route=f"{namespace}/{metadata['name']}",
        listeners=listeners,
        hosts=tuple(spec.get("hostnames") or (EVERY_HOST,)),
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


def _takes_every_path(rule: Mapping[str, Any]) -> bool:
    return any(map(_is_plain, rule.get("matches") or ({},)))


def _is_plain(match: Mapping[str, Any]) -> bool:
    path = match.get("path") or {}
    is_root = (path.get("type", "PathPrefix"), path.get("value", "/")) == ("PathPrefix", "/")
    return is_root and not any(match.get(each) for each in _MORE_SPECIFIC)
