"""The InferencePool, and what gateway implementations need beside it and the HTTPRoute.

A new provider is one value of `GatewayProvider` and one entry in `PROVIDERS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from kvtier_operator.api.spec.router import GatewayProvider, RouterSpec
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.objects.common import EXT_PROC_PORT
from kvtier_operator.planning.objects.gateway.standalone import standalone_objects
from kvtier_operator.planning.plan import Plan

POOL_GROUP: Final = "inference.networking.k8s.io"
POOL_KIND: Final = "InferencePool"

_HBONE_PORT: Final = 15008
"""Where a pod of Istio's ambient mesh gets what is sent to any of its ports. Source: istio.io, "Ambient and
Kubernetes NetworkPolicy"."""
_GKE_HEALTH_CHECK_S: Final = 2
"""Interval and timeout; GKE's own 5 s would send requests to a stopping engine longer. Source: its chart."""
_GKE_BACKEND_TIMEOUT_S: Final = 3600
"""GKE's load balancer has no endless request; its default of 30 s would cut answers off."""
_GKE_CHECKS_FROM: Final = ("35.191.0.0/16", "130.211.0.0/22")
"""Google's health checks and front ends. Requests come from the network's proxy-only subnet, whose range is
the network's choice. Source: cloud.google.com/load-balancing/docs/firewall-rules."""


def has_pool(router: RouterSpec) -> bool:
    """Whether there is a pool, for a gateway or for the picker.

    Behind kvtier's own gateway pickers that can find the engines by their labels, so that the cluster need
    not know InferencePools.
    """
    return router.standalone is None or flavor_traits(router.flavor).needs_pool


def inference_pool(plan: Plan) -> dict[str, Any] | None:
    """Source: kubernetes-sigs/gateway-api-inference-extension, api/v1/inferencepool_types.go."""
    if not has_pool(plan.resource.spec.router):
        return None
    names = Names.of(plan)
    return {
        "apiVersion": f"{POOL_GROUP}/v1",
        "kind": POOL_KIND,
        "metadata": names.metadata(names.resource, Component.ROUTER),
        "spec": {
            "selector": {"matchLabels": names.selector(Component.ENGINE)},
            "targetPorts": [{"number": plan.engine.port}],
            "endpointPickerRef": {
                "group": "",
                "kind": "Service",
                "name": names.picker,
                "port": {"number": EXT_PROC_PORT},
                "failureMode": plan.resource.spec.router.failure_mode.value,
            },
        },
    }


@dataclass(frozen=True, slots=True)
class Provider:
    """One gateway implementation."""

    # makes what it needs beside InferencePool and HTTPRoute
    objects: Callable[[Plan], tuple[dict[str, Any], ...]] = lambda _: ()
    route_timeouts: bool = True  # whether it takes `timeouts` in an HTTPRoute
    rewrites_paths: bool = True  # whether it replaces a path's prefix by another one than `/`
    # whether the platform's own Prometheus reads PodMonitoring in place of ServiceMonitor
    managed_prometheus: bool = False
    own_proxies: bool = False  # whether its proxies are pods that kvtier makes
    proxies_beside_gateway: bool = False  # whether its proxies are pods in the Gateway's namespace
    calls_from: str = ""  # what addresses its proxies have, where they are no pods
    # where it calls and checks a picker from, beside its proxies' own addresses
    ip_blocks: tuple[str, ...] = ()
    # ports at which its mesh, where there is one, hands a pod what was sent to another
    mesh_ports: tuple[int, ...] = ()


def _istio_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """Istio must be told that the picker serves TLS with a certificate that it signed itself.

    Source: llm-d-router v0.10.0, config/charts/llm-d-router-gateway/templates/istio.yaml; the inference
    extension's chart makes the same. istiod itself must run with ENABLE_GATEWAY_API_INFERENCE_EXTENSION=true.
    """
    names = Names.of(plan)
    rule = {
        "apiVersion": "networking.istio.io/v1",
        "kind": "DestinationRule",
        "metadata": names.metadata(names.picker, Component.PICKER),
        "spec": {
            # Without dots: Istio completes it with the rule's namespace and the cluster's own domain, which
            # is not cluster.local everywhere (istio.io, DestinationRule, `host`)
            "host": names.picker,
            "trafficPolicy": {"tls": {"mode": "SIMPLE", "insecureSkipVerify": True}},
        },
    }
    return (rule,)


def _gke_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """GKE's load balancer checks the engines' health itself and limits the time of an answer.

    Source: llm-d-router v0.10.0, config/charts/llm-d-router-gateway/templates/gke.yaml; the inference
    extension's chart makes the same. The picker needs no policy: the gateway's controller checks its gRPC
    health on port 9003, where it answers.
    """
    scheme = "https" if plan.resource.spec.engine.extra_args.serves_tls else "http"
    request = {"requestPath": "/health", "port": plan.engine.port}
    check = {"type": scheme.upper(), f"{scheme}HealthCheck": request}
    health = {"timeoutSec": _GKE_HEALTH_CHECK_S, "checkIntervalSec": _GKE_HEALTH_CHECK_S, "config": check}
    return (
        _gke_policy(plan, "HealthCheckPolicy", health),
        _gke_policy(plan, "GCPBackendPolicy", {"timeoutSec": _GKE_BACKEND_TIMEOUT_S}),
    )


def _gke_policy(plan: Plan, kind: str, default: dict[str, Any]) -> dict[str, Any]:
    """A policy for the pool."""
    names = Names.of(plan)
    return {
        "apiVersion": "networking.gke.io/v1",
        "kind": kind,
        "metadata": names.metadata(names.resource, Component.ROUTER),
        "spec": {
            "targetRef": {"group": POOL_GROUP, "kind": POOL_KIND, "name": names.resource},
            "default": default,
        },
    }


_NONE: Final = Provider()
"""A gateway that needs nothing of its own, or one that kvtier does not know."""

PROVIDERS: Final[Mapping[GatewayProvider, Provider]] = MappingProxyType(
    {
        GatewayProvider.NONE: _NONE,
        GatewayProvider.ISTIO: Provider(
            objects=_istio_objects, proxies_beside_gateway=True, mesh_ports=(_HBONE_PORT,)
        ),
        GatewayProvider.GKE: Provider(
            objects=_gke_objects,
            route_timeouts=False,
            rewrites_paths=False,
            managed_prometheus=True,
            calls_from="the network's proxy-only subnet",
            ip_blocks=_GKE_CHECKS_FROM,
        ),
        # Its Envoy calls the picker over TLS, whatever its certificate, and only so: a picker that serves
        # plain text is not reached (kgateway-dev/kgateway, issue 11429). It takes InferencePools up to
        # version 2.1 only (pull request 12437), which the check `gateway-provider` says.
        GatewayProvider.KGATEWAY: Provider(proxies_beside_gateway=True),
        # Its controller gives every InferencePool's picker a TLS policy that accepts any certificate
        # (agentgateway/agentgateway, controller/pkg/agentgateway/plugins/inference_plugin.go). The plain-text
        # picker of llm-d-router's charts is for agentgateway as a proxy without a controller.
        GatewayProvider.AGENTGATEWAY: Provider(proxies_beside_gateway=True),
        # an Envoy and a Service of kvtier take the place of a Gateway and its HTTPRoute
        GatewayProvider.STANDALONE: Provider(objects=standalone_objects, own_proxies=True),
    }
)


def provider_of(router: RouterSpec) -> Provider:
    """The provider of the gateway; the one that needs nothing where there is no gateway."""
    return _NONE if router.gateway is None else PROVIDERS[router.gateway.provider]
