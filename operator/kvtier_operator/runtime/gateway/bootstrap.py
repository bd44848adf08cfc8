"""Envoy's bootstrap for a local run: one listener, the picker that is asked, the engines.

Sources: Envoy 1.40's API v3 (ext_proc, override_host, early_header_mutation) and the endpoint picker protocol
of kubernetes-sigs/gateway-api-inference-extension (docs/proposals/004-endpoint-picker-protocol).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.api.spec.router import FailureMode

DESTINATION: Final = "x-gateway-destination-endpoint"
"""Header, and key of the metadata `envoy.lb`, in which a picker names the engine."""

PICK_TIMEOUT_S: Final = 2.0
"""How long the picker may take before the failure mode decides. A pick takes milliseconds."""

BODY_BYTES: Final = 64 * 1024**2
"""Largest request: Envoy holds it while the picker reads it. The picker's own limit is lower by default."""

_TYPE: Final = "type.googleapis.com/envoy.extensions."
_ENGINES: Final = "engines"
_PICKER: Final = "picker"
_CONNECT_TIMEOUT: Final = "5s"
_UNLIMITED: Final = "0s"
_UNAVAILABLE: Final = 503
# Nothing else here has a time limit: a 504 of Envoy's own is a picker that did not answer in time.
_LATE_PICK: Final = {
    "filter": {
        "status_code_filter": {"comparison": {"value": {"default_value": 504, "runtime_key": "late_pick"}}}
    },
    "status_code": _UNAVAILABLE,
    "body_format_override": {
        "text_format_source": {
            "inline_string": f"the endpoint picker did not answer in {PICK_TIMEOUT_S:g} s\n"
        }
    },
}
# Envoy's defaults allow 1,024 requests at once; here the engines' queues are the bound.
_NO_LIMITS: Final = {
    "thresholds": [dict.fromkeys(("max_connections", "max_pending_requests", "max_requests"), 1_000_000)]
}


@dataclass(frozen=True, slots=True)
class Address:
    """A TCP address."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Gateway:
    """What Envoy is to do.

    Attributes:
        listen: Where the one URL is.
        engines: What it leads to.
        picker: Whom it asks for each request; None to give the engines turns.
        failure_mode: What becomes of a request whose pick fails.
    """

    listen: Address
    engines: Sequence[Address]
    picker: Address | None = None
    failure_mode: FailureMode = FailureMode.FAIL_OPEN


def bootstrap(gateway: Gateway) -> dict[str, Any]:
    """The whole bootstrap; its administration listens on a port of the kernel's choice."""
    clusters = [_engines(gateway.engines)]
    if gateway.picker is not None:
        clusters.append(_picker(gateway.picker))
    return {
        "admin": {"address": _socket(Address("127.0.0.1", 0))},
        "static_resources": {"listeners": [_listener(gateway)], "clusters": clusters},
    }


def _listener(gateway: Gateway) -> dict[str, Any]:
    router = _extension("envoy.filters.http.router", "filters.http.router.v3.Router", {})
    route = {"cluster": _ENGINES, "timeout": _UNLIMITED}
    manager = {
        "stat_prefix": "gateway",
        # what a client writes there must not choose an engine
        "early_header_mutation_extensions": [
            _extension(
                "envoy.http.early_header_mutation.header_mutation",
                "http.early_header_mutation.header_mutation.v3.HeaderMutation",
                {"mutations": [{"remove": DESTINATION}]},
            )
        ],
        "local_reply_config": {"mappers": [_LATE_PICK]},
        # a generation may be silent for as long as it takes
        "stream_idle_timeout": _UNLIMITED,
        "route_config": {
            "virtual_hosts": [
                {"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": route}]}
            ]
        },
        "http_filters": [*([] if gateway.picker is None else [_ext_proc(gateway.failure_mode)]), router],
    }
    kind = "filters.network.http_connection_manager.v3.HttpConnectionManager"
    chain = {"filters": [_extension("envoy.filters.network.http_connection_manager", kind, manager)]}
    return {
        "name": "gateway",
        "address": _socket(gateway.listen),
        "per_connection_buffer_limit_bytes": BODY_BYTES,
        "filter_chains": [chain],
    }


def _ext_proc(failure_mode: FailureMode) -> dict[str, Any]:
    """The request is buffered, not streamed to the picker.

    With FULL_DUPLEX_STREAMED Envoy keeps no copy of what it has sent and starts no timer: once the picker
    has got the first bytes, a request is lost with it (envoyproxy/envoy #41276). With BUFFERED Envoy still
    has the whole request, waits `message_timeout` and then does what the failure mode says.
    """
    return _extension(
        "envoy.filters.http.ext_proc",
        "filters.http.ext_proc.v3.ExternalProcessor",
        {
            "grpc_service": {"envoy_grpc": {"cluster_name": _PICKER}},
            "failure_mode_allow": failure_mode is FailureMode.FAIL_OPEN,
            "message_timeout": f"{PICK_TIMEOUT_S:g}s",
            "status_on_error": {"code": _UNAVAILABLE},
            "processing_mode": {
                "request_header_mode": "SEND",
                "request_body_mode": "BUFFERED",
                "response_header_mode": "SEND",
                "response_body_mode": "NONE",
            },
            "metadata_options": {"receiving_namespaces": {"untyped": ["envoy.lb"]}},
        },
    )


def _engines(addresses: Sequence[Address]) -> dict[str, Any]:
    """The engine that the picker names; where none is named or it is not known, each in turn."""
    turns = _policy("round_robin", "round_robin.v3.RoundRobin", {})
    named = [{"header": DESTINATION}, {"metadata": {"key": "envoy.lb", "path": [{"key": DESTINATION}]}}]
    policy = _policy(
        "override_host",
        "override_host.v3.OverrideHost",
        {"override_host_sources": named, "fallback_policy": {"policies": [turns]}},
    )
    return _cluster(_ENGINES, addresses) | {"load_balancing_policy": {"policies": [policy]}}


def _picker(address: Address) -> dict[str, Any]:
    name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    options = {
        "@type": f"{_TYPE}upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    return _cluster(_PICKER, [address]) | {"typed_extension_protocol_options": {name: options}}


def _cluster(name: str, addresses: Sequence[Address]) -> dict[str, Any]:
    endpoints = [{"endpoint": {"address": _socket(address)}} for address in addresses]
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": _CONNECT_TIMEOUT,
        "circuit_breakers": _NO_LIMITS,
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
    }


def _policy(name: str, kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    extension = _extension(
        f"envoy.load_balancing_policies.{name}", f"load_balancing_policies.{kind}", settings
    )
    return {"typed_extension_config": extension}


def _extension(name: str, kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "typed_config": {"@type": f"{_TYPE}{kind}", **settings}}


def _socket(address: Address) -> dict[str, Any]:
    return {"socket_address": {"address": address.host, "port_value": address.port}}
