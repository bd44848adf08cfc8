"""HTTPRoutes from a gateway to the pool."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from kvtier_operator.api.spec.router import Gateway, ParentRef
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.gateway.providers import (
    POOL_GROUP,
    POOL_KIND,
    provider_of,
)
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.router.engine_routes import EVERY_PATH, passed_paths

_GATEWAY_GROUP: Final = "gateway.networking.k8s.io"
_MOST_MATCHES: Final = 8
"""Of a rule. Source: Gateway API v1.0, apis/v1/httproute_types.go; later versions take 64."""
_MOST_RULES: Final = 16
"""Of a route. Source: the same, in all versions."""

_Object = dict[str, Any]
_T = TypeVar("_T")


def http_routes(plan: Plan) -> tuple[_Object, ...]:
    """The way to the pool for what passes, below the resource's own path or not; none without a Gateway.

    The first has the resource's name, and the paths that clients ask most. One that rewrites paths can have
    as many as rules, so that there are several.
    """
    gateway = plan.resource.spec.router.gateway
    parent = gateway.parent_ref if gateway else None
    if gateway is None or parent is None:
        return ()
    names = Names.of(plan)
    shared = {"parentRefs": [_parent_ref(parent)], "hostnames": list(gateway.hostnames)}
    parts = _parts([*_rules(plan, gateway, names)], _MOST_RULES)
    return tuple(
        {
            "apiVersion": f"{_GATEWAY_GROUP}/v1",
            "kind": "HTTPRoute",
            "metadata": names.metadata(names.route(number), Component.ROUTER),
            "spec": {**shared, "rules": rules},
        }
        for number, rules in enumerate(parts, 1)
    )


def _rules(plan: Plan, gateway: Gateway, names: Names) -> Iterator[_Object]:
    provider = provider_of(plan.resource.spec.router)
    paths = passed_paths(gateway.extra_paths)
    rest: dict[str, Any] = {
        "backendRefs": [{"group": POOL_GROUP, "kind": POOL_KIND, "name": names.resource, "weight": 1}]
    }
    if provider.route_timeouts:
        # 0s: none (Gateway API, HTTPRouteTimeouts); an answer may stream for minutes
        rest["timeouts"] = {"request": "0s"}
    if not gateway.own_path:
        for part in _parts(paths, _MOST_MATCHES):
            # also what nobody asks for is said, so that others' additions are seen and taken away
            yield {"matches": _matches(part), "filters": [], **rest}
        return
    own_path = f"/{names.namespace}/{names.resource}"
    for path in paths if provider.rewrites_paths else (EVERY_PATH,):
        inside = "" if path == EVERY_PATH else path
        yield {"matches": _matches([own_path + inside]), "filters": [_rewrite_to(path)], **rest}


def _parent_ref(parent: ParentRef) -> Mapping[str, str]:
    optional = {"namespace": parent.namespace, "sectionName": parent.section_name}
    gateway = {"group": _GATEWAY_GROUP, "kind": "Gateway", "name": parent.name}
    return gateway | {key: value for key, value in optional.items() if value}


def _matches(paths: Iterable[str]) -> list[_Object]:
    return [{"path": {"type": "PathPrefix", "value": path}} for path in paths]


def _rewrite_to(path: str) -> _Object:
    """Pickers see the path as the client sent it, and read its end."""
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": path}}
    return {"type": "URLRewrite", "urlRewrite": rewrite}


def _parts(whole: Sequence[_T], most: int) -> Iterator[Sequence[_T]]:
    return (whole[start : start + most] for start in range(0, len(whole), most))
