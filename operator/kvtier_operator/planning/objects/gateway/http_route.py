"""HTTPRoute from a gateway to the pool."""

from typing import Any, Final

from kvtier_operator.planning.objects.gateway.inference_pool import GROUP as POOL_GROUP
from kvtier_operator.planning.objects.gateway.inference_pool import KIND as POOL_KIND
from kvtier_operator.planning.objects.gateway.providers import gateway_provider
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.plan import Plan

_GATEWAY_GROUP: Final = "gateway.networking.k8s.io"
_WITHOUT_PREFIX: Final = {
    "type": "URLRewrite",
    "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
}
"""GKE replaces a prefix by `/` alone. Pickers see the path as the client sent it, and read its end."""


def http_route(plan: Plan) -> dict[str, Any] | None:
    """The resource's own path to the pool, or every one; None where the resource names no Gateway."""
    gateway = plan.resource.spec.router.gateway
    parent = gateway.parent_ref if gateway else None
    if gateway is None or parent is None:
        return None
    names = Names.of(plan)
    optional = {"namespace": parent.namespace, "sectionName": parent.section_name}
    own_path = f"/{names.namespace}/{names.resource}" if gateway.own_path else ""
    rule: dict[str, Any] = {
        "matches": [{"path": {"type": "PathPrefix", "value": own_path or "/"}}],
        # also what nobody asks for is said, so that others' additions are seen and taken away
        "filters": [_WITHOUT_PREFIX] if own_path else [],
        "backendRefs": [{"group": POOL_GROUP, "kind": POOL_KIND, "name": names.resource, "weight": 1}],
    }
    if gateway_provider(plan).route_timeouts:
        # 0s: none (Gateway API, HTTPRouteTimeouts); an answer may stream for minutes
        rule["timeouts"] = {"request": "0s"}
    spec: dict[str, Any] = {
        "parentRefs": [
            {"group": _GATEWAY_GROUP, "kind": "Gateway", "name": parent.name}
            | {key: value for key, value in optional.items() if value}
        ],
        "hostnames": list(gateway.hostnames),
        "rules": [rule],
    }
    return {
        "apiVersion": f"{_GATEWAY_GROUP}/v1",
        "kind": "HTTPRoute",
        "metadata": names.metadata(names.resource, Component.ROUTER),
        "spec": spec,
    }
