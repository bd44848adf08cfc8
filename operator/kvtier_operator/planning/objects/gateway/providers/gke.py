"""GKE's load balancer checks the engines' health itself and limits the time of an answer.

Source: llm-d-router v0.10.0, config/charts/llm-d-router-gateway/templates/gke.yaml; the inference extension's
chart makes the same. The picker needs no policy: the gateway's controller checks its gRPC health on port
9003, where it answers.
"""

from typing import Any, Final

from kvtier_operator.planning.arguments.extra_args import serves_tls
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.gateway.inference_pool import GROUP as POOL_GROUP
from kvtier_operator.planning.objects.gateway.inference_pool import KIND as POOL_KIND
from kvtier_operator.planning.objects.gateway.providers.provider import Provider
from kvtier_operator.planning.plan import Plan

_API_VERSION: Final = "networking.gke.io/v1"
_HEALTH_CHECK_S: Final = 2
"""Interval and timeout; GKE's own 5 s would send requests to a stopping engine longer. Source: the same."""
_BACKEND_TIMEOUT_S: Final = 3600
"""GKE's load balancer has no endless request; its default of 30 s would cut answers off."""

_CHECKED_FROM: Final = ("35.191.0.0/16", "130.211.0.0/22")
"""Google's health checks and front ends. Requests come from the network's proxy-only subnet, whose range is
the network's choice. Source: cloud.google.com/load-balancing/docs/firewall-rules."""


def _objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    return (_health_check_policy(plan), _backend_policy(plan))


def _health_check_policy(plan: Plan) -> dict[str, Any]:
    scheme = "https" if serves_tls(plan.resource.spec.engine) else "http"
    asked = {"requestPath": "/health", "port": plan.engine.port}
    check = {"type": scheme.upper(), f"{scheme}HealthCheck": asked}
    default = {"timeoutSec": _HEALTH_CHECK_S, "checkIntervalSec": _HEALTH_CHECK_S, "config": check}
    return _policy(plan, "HealthCheckPolicy", default)


def _backend_policy(plan: Plan) -> dict[str, Any]:
    return _policy(plan, "GCPBackendPolicy", {"timeoutSec": _BACKEND_TIMEOUT_S})


def _policy(plan: Plan, kind: str, default: dict[str, Any]) -> dict[str, Any]:
    """A policy for the pool."""
    names = Names.of(plan)
    return {
        "apiVersion": _API_VERSION,
        "kind": kind,
        "metadata": names.metadata(names.resource, Component.ROUTER),
        "spec": {
            "targetRef": {"group": POOL_GROUP, "kind": POOL_KIND, "name": names.resource},
            "default": default,
        },
    }


GKE: Final = Provider(
    objects=_objects,
    route_timeouts=False,
    rewrites_paths=False,
    managed_prometheus=True,
    calls_from="the network's proxy-only subnet",
    ip_blocks=_CHECKED_FROM,
)
