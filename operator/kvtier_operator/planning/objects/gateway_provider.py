"""What a gateway implementation needs beside the HTTPRoute.

Source: llm-d-router v0.10.0, config/charts/llm-d-router-gateway/templates/{istio,gke}.yaml; the inference
extension's charts make the same objects.
"""

from typing import Any, Final

from kvtier_operator.api.router import GatewayProvider
from kvtier_operator.planning.objects.inference_pool import GROUP as POOL_GROUP
from kvtier_operator.planning.objects.inference_pool import KIND as POOL_KIND
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.plan import Plan

_GKE_BACKEND_TIMEOUT_S: Final = 3600
"""GKE's load balancer has no endless request; its default of 30 s would cut answers off."""


def gateway_provider_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """Nothing for gateways that need nothing."""
    gateway = plan.resource.spec.router.gateway
    if gateway is None:
        return ()
    if gateway.provider is GatewayProvider.ISTIO:
        return (_destination_rule(plan),)
    if gateway.provider is GatewayProvider.GKE:
        return (_health_check_policy(plan), _backend_policy(plan))
    return ()


def _destination_rule(plan: Plan) -> dict[str, Any]:
    """Istio must be told that the picker serves TLS with a certificate that it signed itself."""
    names = Names.of(plan)
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "DestinationRule",
        "metadata": names.metadata(names.picker, Component.PICKER),
        "spec": {
            "host": f"{names.picker}.{names.namespace}.svc.cluster.local",
            "trafficPolicy": {"tls": {"mode": "SIMPLE", "insecureSkipVerify": True}},
        },
    }


def _health_check_policy(plan: Plan) -> dict[str, Any]:
    names = Names.of(plan)
    check = {"type": "HTTP", "httpHealthCheck": {"requestPath": "/health", "port": plan.engine.port}}
    return {
        "apiVersion": "networking.gke.io/v1",
        "kind": "HealthCheckPolicy",
        "metadata": names.metadata(names.resource, Component.ROUTER),
        "spec": {
            "targetRef": _pool_reference(names),
            "default": {"timeoutSec": 2, "checkIntervalSec": 2, "config": check},
        },
    }


def _backend_policy(plan: Plan) -> dict[str, Any]:
    names = Names.of(plan)
    return {
        "apiVersion": "networking.gke.io/v1",
        "kind": "GCPBackendPolicy",
        "metadata": names.metadata(names.resource, Component.ROUTER),
        "spec": {
            "targetRef": _pool_reference(names),
            "default": {"timeoutSec": _GKE_BACKEND_TIMEOUT_S},
        },
    }


def _pool_reference(names: Names) -> dict[str, str]:
    return {"group": POOL_GROUP, "kind": POOL_KIND, "name": names.resource}
