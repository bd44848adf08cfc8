"""Envoy's clusters: the engines, the picker and other gateways."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final

from kvtier_operator.planning.envoy.gateway import (
    Address,
    EngineService,
    Gateway,
    KnownEngines,
    Picker,
)
from kvtier_scorer.config.contract import DESTINATION

UNLIMITED: Final = "0s"
EXT_PROC: Final = "envoy.filters.http.ext_proc"
ENGINES: Final = "engines"
PICKED: Final = "picked-engine"
PICKER: Final = "picker"
TRACES: Final = "traces"
MODEL_ROUTER: Final = "model-router"
"""Name of its filter, too."""
_CONNECT_TIMEOUT: Final = "5s"
_CHECK_TIMEOUT: Final = "2s"
# Envoy's defaults allow 1,024 requests at once; here the engines' queues are the bound.
_NO_LIMITS: Final = {
    "thresholds": [dict.fromkeys(("max_connections", "max_pending_requests", "max_requests"), 1_000_000)]
}
_TLS: Final = "envoy.transport_sockets.tls"
_STREAMS: Final = 48
"""On one connection to a picker or the model router: kvtier's own reset what is above 64 of a burst."""


def any_of(kind: str) -> dict[str, Any]:
    """The type of a message among Envoy's extensions."""
    return {"@type": f"type.googleapis.com/envoy.extensions.{kind}"}


def extension(name: str, kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """An extension with its settings."""
    return {"name": name, "typed_config": {**any_of(kind), **settings}}


def socket_address(address: Address) -> dict[str, Any]:
    """An address to listen at or to connect to."""
    return {"socket_address": {"address": address.host, "port_value": address.port}}


def clusters(gateway: Gateway) -> list[dict[str, Any]]:
    """All of them."""
    built = _engines(gateway.engines)
    if gateway.picker is not None:
        built.append(_picker(gateway.picker))
    if gateway.entrance is not None and gateway.entrance.traces is not None:
        built.append(_cluster(TRACES, [gateway.entrance.traces.collector]) | _http2())
    if gateway.entrance is None or gateway.entrance.model_router is None:
        return built
    built.append(_cluster(MODEL_ROUTER, [gateway.entrance.model_router]) | _http2())
    others = gateway.entrance.others.items()
    return [*built, *(_cluster(cluster_of(name), [address]) for name, address in others)]


def cluster_of(resource: str) -> str:
    """Name of the cluster that is another resource's gateway."""
    return f"gateway-{resource}"


def _engines(engines: KnownEngines | EngineService) -> list[dict[str, Any]]:
    if isinstance(engines, KnownEngines):
        return [_cluster(ENGINES, engines.addresses) | {"load_balancing_policy": _as_picked()}]
    tls = {"transport_socket": _unverified_tls()} if engines.tls else {}
    picked = {
        "name": PICKED,
        "type": "ORIGINAL_DST",
        "lb_policy": "CLUSTER_PROVIDED",
        "connect_timeout": _CONNECT_TIMEOUT,
        "circuit_breakers": _NO_LIMITS,
        "original_dst_lb_config": {"use_http_header": True, "http_header_name": DESTINATION},
    }
    return [picked | tls, _cluster(ENGINES, [engines.address]) | tls]


def _as_picked() -> dict[str, Any]:
    """The engine that the picker names; where none is named or it is not known, each in turn."""
    turns = _policy("round_robin", "round_robin.v3.RoundRobin", {})
    sources = [{"header": DESTINATION}, {"metadata": {"key": "envoy.lb", "path": [{"key": DESTINATION}]}}]
    settings = {"override_host_sources": sources, "fallback_policy": {"policies": [turns]}}
    return {"policies": [_policy("override_host", "override_host.v3.OverrideHost", settings)]}


def _picker(picker: Picker) -> dict[str, Any]:
    cluster = _cluster(PICKER, [picker.address]) | _http2()
    if picker.tls:
        cluster["transport_socket"] = _unverified_tls(alpn_protocols=["h2"])
    if picker.check_s is not None:
        cluster |= _health_checks(f"{picker.check_s:g}s")
    return cluster


def _http2() -> dict[str, Any]:
    options = {
        **any_of("upstreams.http.v3.HttpProtocolOptions"),
        "explicit_http_config": {"http2_protocol_options": {"max_concurrent_streams": _STREAMS}},
    }
    name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    return {"typed_extension_protocol_options": {name: options}}


def _health_checks(often: str) -> dict[str, Any]:
    """A picker that is gone is then not asked at all: a request that it was sent a part of would be lost."""
    intervals = dict.fromkeys(("interval", "no_traffic_interval", "unhealthy_interval"), often)
    # twice, and with time for each: one that is busy is not gone
    thresholds = {"unhealthy_threshold": 2, "healthy_threshold": 1, "timeout": _CHECK_TIMEOUT}
    return {
        "health_checks": [{**intervals, **thresholds, "tcp_health_check": {}}],
        # one that is alone and unhealthy would be asked all the same
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
    }


def _unverified_tls(**common: Any) -> dict[str, Any]:  # noqa: ANN401 - of Envoy's API
    """TLS to whoever it is: pickers and engines are asked by address, which no certificate names."""
    return extension(_TLS, "transport_sockets.tls.v3.UpstreamTlsContext", {"common_tls_context": common})


def _cluster(name: str, addresses: Sequence[Address]) -> dict[str, Any]:
    endpoints = [{"endpoint": {"address": socket_address(address)}} for address in addresses]
    return {
        "name": name,
        **_discovery(addresses),
        "connect_timeout": _CONNECT_TIMEOUT,
        "circuit_breakers": _NO_LIMITS,
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
    }


def _discovery(addresses: Sequence[Address]) -> dict[str, Any]:
    """Names are looked up again and again, IPv4 addresses first."""
    try:
        for address in addresses:
            ip_address(address.host)
    except ValueError:
        return {"type": "STRICT_DNS", "dns_lookup_family": "V4_PREFERRED"}
    return {"type": "STATIC"}


def _policy(name: str, kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    policy = extension(f"envoy.load_balancing_policies.{name}", f"load_balancing_policies.{kind}", settings)
    return {"typed_extension_config": policy}
