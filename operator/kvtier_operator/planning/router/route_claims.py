"""Which of several HTTPRoutes on one Gateway is served where they ask for the same requests.

Source: Gateway API v1, apis/v1/httproute_types.go, `hostnames` and `matches`: the more specific host name
goes first, then the more specific match, then the older route, then the first one by `namespace/name`. So
only routes that say the very same host name and the very same path are in each other's way.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
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


class Listeners(NamedTuple):
    """What a route attaches to.

    Attributes:
        gateway: The Gateway, `namespace/name`.
        section: Name of its listener; empty for all.
        port: Port of its listeners; 0 for all.
    """

    gateway: str
    section: str = ""
    port: int = 0

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
    """A route that takes all of a path, as kvtier's do.

    Attributes:
        created: When the route was made, RFC 3339 in UTC.
        route: The route, `namespace/name`.
        listeners: Where it attaches; at least to one.
        hosts: Its host names, each once; EVERY_HOST where it has none.
        paths: Of which paths it takes all requests, of those that kvtier's routes can have; at least one.
    """

    created: str
    route: str
    listeners: frozenset[Listeners]
    hosts: tuple[str, ...]
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
    """Why requests do not reach a route.

    Attributes:
        by: The route that gets them.
        gateway: On which Gateway.
        hosts: Requests for which hosts.
        wholly: Whether others get all that the route asks for.
        path: Requests below which path.
    """

    by: Claim
    gateway: str
    hosts: tuple[str, ...]
    wholly: bool
    path: str = EVERY_PATH

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
    wanted = (listeners_of(each, namespace) for each in spec.get("parentRefs") or ())
    listeners = frozenset(each for each in wanted if each is not None and each not in refused)
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
    if path.get("type", "PathPrefix") != "PathPrefix" or any(match.get(each) for each in _MORE_SPECIFIC):
        return ""
    # with or without a slash at its end it is the same (Gateway API, PathMatchPathPrefix)
    value = path.get("value", "/").rstrip("/") or EVERY_PATH
    return value if value == EVERY_PATH or _OWN_PATH.fullmatch(value) else ""
