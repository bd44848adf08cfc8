"""Envoy's bootstrap: a gateway in front of an endpoint picker, as gateways that know InferencePool set it up.

Sources: the endpoint picker protocol of kubernetes-sigs/gateway-api-inference-extension
(docs/proposals/004-endpoint-picker-protocol) and Envoy's API v3 (ext_proc, original_dst, override_host).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

DESTINATION: Final = "x-gateway-destination-endpoint"
"""Header, and key of the metadata `envoy.lb`, in which a picker names the pod."""

_TYPE: Final = "type.googleapis.com/envoy.extensions."
_UNLIMITED: Final = "0s"
_LIMITS: Final = ("max_connections", "max_pending_requests", "max_requests")
# Envoy's default of 1,024 would be what a test of many requests at once measures.
_NO_LIMITS: Final[Mapping[str, Any]] = {"thresholds": [dict.fromkeys(_LIMITS, 100_000)]}


class Routing(Enum):
    """How Envoy goes to the pod that a picker named."""

    ORIGINAL_DST = "by the header, and by nothing else where there is none"
    OVERRIDE_HOST = "by the metadata or the header among known pods, round-robin where there is none"


@dataclass(frozen=True, slots=True)
class Gateway:
    """One listener with a picker behind it.

    Attributes:
        name: The listener's name.
        picker: Host and port of the picker's ext_proc service; None sends every request on unasked.
        pods: Addresses that requests go to where no picker decides.
        routing: How the named pod is reached.
        fail_open: Whether requests go on where the picker fails (`failure_mode_allow`). Envoy keeps no copy
            of a body in this mode: a request goes on only if the picker fails before it was sent any of it.
        health_check_s: How often Envoy asks the picker's health, and how long it waits; None for never.
            Without a healthy picker a request fails at once, so that all go on where `fail_open` is set.
        message_timeout_s: How long the picker may take for an answer.
        tls: Whether the picker speaks TLS, with any certificate.
        response_body: Whether the picker sees answers' bodies.
        subset: Addresses that the picker may choose from, as a subset of the endpoint picker protocol.
        buffered: Whether a request's body comes to the picker as a whole, as older gateways send it.
    """

    name: str
    picker: tuple[str, int] | None
    pods: Sequence[tuple[str, int]] = ()
    routing: Routing = Routing.ORIGINAL_DST
    fail_open: bool = False
    health_check_s: float | None = None
    message_timeout_s: float = 15.0
    tls: bool = False
    response_body: bool = False
    subset: Sequence[str] = ()
    buffered: bool = False


def bootstrap(gateways: Sequence[Gateway]) -> dict[str, Any]:
    """The whole bootstrap; every port is the kernel's choice."""
    return {
        "admin": {"address": _socket("127.0.0.1", 0)},
        "static_resources": {
            "listeners": [_listener(gateway) for gateway in gateways],
            "clusters": [cluster for gateway in gateways for cluster in _clusters(gateway)],
        },
        "overload_manager": {
            "resource_monitors": [
                _extension(
                    "envoy.resource_monitors.global_downstream_max_connections",
                    {
                        **_any("resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig"),
                        "max_active_downstream_connections": 10_000,
                    },
                ),
            ],
        },
    }


def _listener(gateway: Gateway) -> dict[str, Any]:
    manager = {
        **_any("filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": gateway.name,
        # what a client puts there must not choose a pod where the picker is not asked
        "early_header_mutation_extensions": [
            _extension(
                "envoy.http.early_header_mutation.header_mutation",
                {
                    **_any("http.early_header_mutation.header_mutation.v3.HeaderMutation"),
                    "mutations": [{"remove": DESTINATION}],
                },
            ),
        ],
        "route_config": {"virtual_hosts": [_virtual_host(gateway)]},
        "http_filters": [
            *_subset(gateway),
            *_ext_proc(gateway),
            _extension("envoy.filters.http.router", _any("filters.http.router.v3.Router")),
        ],
    }
    chain = {"filters": [_extension("envoy.filters.network.http_connection_manager", manager)]}
    return {"name": gateway.name, "address": _socket("127.0.0.1", 0), "filter_chains": [chain]}


def _virtual_host(gateway: Gateway) -> dict[str, Any]:
    """Without a named pod, fail-open requests go round-robin: original_dst alone has nowhere to send them."""
    known = {"match": {"prefix": "/"}, "route": _to(f"{gateway.name}-pods")}
    if gateway.routing is Routing.OVERRIDE_HOST or gateway.picker is None:
        routes = [known]
    else:
        named = {"prefix": "/", "headers": [{"name": DESTINATION, "present_match": True}]}
        routes = [{"match": named, "route": _to(f"{gateway.name}-named")}]
        if gateway.pods and gateway.fail_open:
            routes.append(known)
    # present in no route until the picker has answered: it sets the header and clears the route
    unnamed = {"match": {"prefix": "/"}, "direct_response": {"status": 503}}
    return {"name": "all", "domains": ["*"], "routes": [*routes, unnamed]}


def _to(cluster: str) -> dict[str, Any]:
    return {"cluster": cluster, "timeout": _UNLIMITED}


def _subset(gateway: Gateway) -> list[dict[str, Any]]:
    """Sets the metadata in which a gateway tells a picker what it may choose from."""
    if not gateway.subset:
        return []
    entry = {
        "metadata_namespace": "envoy.lb.subset_hint",
        "value": {f"{DESTINATION}-subset": list(gateway.subset)},
        "allow_overwrite": True,
    }
    settings = {**_any("filters.http.set_metadata.v3.Config"), "metadata": [entry]}
    return [_extension("envoy.filters.http.set_metadata", settings)]


def _ext_proc(gateway: Gateway) -> list[dict[str, Any]]:
    if gateway.picker is None:
        return []
    response_body = "FULL_DUPLEX_STREAMED" if gateway.response_body else "NONE"
    settings = {
        **_any("filters.http.ext_proc.v3.ExternalProcessor"),
        "grpc_service": {"envoy_grpc": {"cluster_name": f"{gateway.name}-picker"}},
        "failure_mode_allow": gateway.fail_open,
        "message_timeout": f"{gateway.message_timeout_s:g}s",
        "processing_mode": {
            "request_header_mode": "SEND",
            "request_body_mode": "BUFFERED" if gateway.buffered else "FULL_DUPLEX_STREAMED",
            "request_trailer_mode": "SEND",
            "response_header_mode": "SEND",
            "response_body_mode": response_body,
            "response_trailer_mode": "SEND" if gateway.response_body else "SKIP",
        },
        "metadata_options": {
            "forwarding_namespaces": {"untyped": ["envoy.lb.subset_hint", "envoy.lb"]},
            "receiving_namespaces": {"untyped": ["envoy.lb"]},
        },
    }
    return [_extension("envoy.filters.http.ext_proc", settings)]


def _clusters(gateway: Gateway) -> list[dict[str, Any]]:
    clusters = [_pods(gateway)]
    if gateway.picker is not None:
        clusters.append(_picker(gateway, gateway.picker))
        if gateway.routing is Routing.ORIGINAL_DST:
            clusters.append(_named(gateway))
    return clusters


def _named(gateway: Gateway) -> dict[str, Any]:
    return {
        "name": f"{gateway.name}-named",
        "type": "ORIGINAL_DST",
        "lb_policy": "CLUSTER_PROVIDED",
        "connect_timeout": "30s",
        "original_dst_lb_config": {"use_http_header": True, "http_header_name": DESTINATION},
        "circuit_breakers": _NO_LIMITS,
    }


def _pods(gateway: Gateway) -> dict[str, Any]:
    endpoints = [{"endpoint": {"address": _socket(*pod)}} for pod in gateway.pods]
    cluster: dict[str, Any] = {
        "name": f"{gateway.name}-pods",
        "type": "STATIC",
        "connect_timeout": "30s",
        "load_assignment": {"cluster_name": gateway.name, "endpoints": [{"lb_endpoints": endpoints}]},
        "circuit_breakers": _NO_LIMITS,
    }
    round_robin = _policy("round_robin", "round_robin.v3.RoundRobin", {})
    if gateway.routing is Routing.OVERRIDE_HOST:
        sources = [{"metadata": {"key": "envoy.lb", "path": [{"key": DESTINATION}]}}, {"header": DESTINATION}]
        settings = {"override_host_sources": sources, "fallback_policy": {"policies": [round_robin]}}
        policy = _policy("override_host", "override_host.v3.OverrideHost", settings)
    else:
        policy = round_robin
    return {**cluster, "load_balancing_policy": {"policies": [policy]}}


def _picker(gateway: Gateway, address: tuple[str, int]) -> dict[str, Any]:
    options = {
        **_any("upstreams.http.v3.HttpProtocolOptions"),
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    name = f"{gateway.name}-picker"
    cluster: dict[str, Any] = {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "30s",
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options
        },
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _socket(*address)}}]}],
        },
        "circuit_breakers": _NO_LIMITS,
    }
    if gateway.health_check_s is not None:
        often = f"{gateway.health_check_s:g}s"
        check = {
            "interval": often,
            "no_traffic_interval": often,
            "unhealthy_interval": often,
            "timeout": often,
            "unhealthy_threshold": 1,
            "healthy_threshold": 1,
            "grpc_health_check": {},
        }
        cluster["health_checks"] = [check]
        # Envoy would otherwise send to a picker that is the only one and unhealthy.
        cluster["common_lb_config"] = {"healthy_panic_threshold": {"value": 0}}
    if gateway.tls:
        context = {**_any("transport_sockets.tls.v3.UpstreamTlsContext"), "common_tls_context": {}}
        cluster["transport_socket"] = _extension("envoy.transport_sockets.tls", context)
    return cluster


def _policy(name: str, kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    typed = {**_any(f"load_balancing_policies.{kind}"), **settings}
    return {"typed_extension_config": _extension(f"envoy.load_balancing_policies.{name}", typed)}


def _extension(name: str, typed_config: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "typed_config": dict(typed_config)}


def _any(kind: str) -> dict[str, str]:
    return {"@type": f"{_TYPE}{kind}"}


def _socket(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}
