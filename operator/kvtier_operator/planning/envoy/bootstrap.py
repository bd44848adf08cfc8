"""Envoy's configuration: the one listener, its filters and the whole bootstrap.

Sources: Envoy 1.40's API v3 (ext_proc, override_host, original_dst, header_mutation, overload_manager)
and the endpoint picker protocol of kubernetes-sigs/gateway-api-inference-extension
(docs/proposals/004-endpoint-picker-protocol). llm-d-router's standalone chart sets an Envoy up in the same
place (config/charts/llm-d-router-standalone).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kvtier_operator.api.spec.router import FailureMode
from kvtier_operator.planning.envoy.clusters import (
    ENGINES,
    EXT_PROC,
    MODEL_ROUTER,
    PICKED,
    PICKER,
    UNLIMITED,
    any_of,
    cluster_of,
    clusters,
    extension,
    socket_address,
)
from kvtier_operator.planning.envoy.gateway import Address, BodyMode, EngineService, Gateway, Keys, Picker
from kvtier_operator.planning.envoy.keys import (
    KEY_HEADER,
    OPEN_METHODS,
    OPEN_PATHS,
    UNASKED,
    key_filters,
    key_replies,
)
from kvtier_operator.planning.envoy.tracing import tracing
from kvtier_scorer.config.contract import CLIENT, DESTINATION, RESOURCE, SERVED

ADMIN_PORT: Final = 19000
"""Of an entrance's administration, on loopback."""
_MOST_CONNECTIONS: Final = 20_000
# clients that reset their requests, or leave with many of them open, take turns with all others
_RUNTIME: Final = {"http.max_requests_per_io_cycle": 1, "overload.premature_reset_total_stream_count": 50}
_HEAP: Final = "envoy.resource_monitors.fixed_heap"
READY_PATH: Final = "/gateway/ready"
"""Answers 200 by itself, to whoever can reach the gateway at all."""
_CERTIFICATE: Final = "server"
"""Name of the certificate in its file."""
_READ_BYTES: Final = 256 * 1024
"""From a connection at a time: with more, a crowd that uploads keeps others waiting, and fills the memory
before anybody can be refused."""
_PASSED_ON: Final = "x-kvtier-passed-on"
"""Header of a request that comes from another gateway: it is served here, so that none goes in circles."""
_KEPT_BACK: Final = json.dumps(
    {
        "error": {
            "message": "The gateway does not pass this path. spec.router.gateway.extraPaths of its "
            "KVCacheTier opens it, to all clients.",
            "type": "NotFoundError",
            "param": None,
            "code": 404,
        }
    }
)
_FOREIGN_CLIENTS: Final[Mapping[str, Any]] = {
    "use_remote_address": True,
    # picker and engine see the same path, and so does what is kept back
    "normalize_path": True,
    "path_with_escaped_slashes_action": "UNESCAPE_AND_FORWARD",
    # of a client that opens a request and does not go on
    "request_headers_timeout": "10s",
    # until all of it is there: what has come of a body is held
    "request_timeout": "300s",
    # Clients that keep a connection find the gateway that takes this one's place: a Service leads new
    # connections alone to it. What is under way ends first.
    "common_http_protocol_options": {"max_connection_duration": "60s"},
    "http1_safe_max_connection_duration": True,
    "http2_protocol_options": {
        "max_concurrent_streams": 100,
        "initial_stream_window_size": 65536,
        "initial_connection_window_size": 1048576,
    },
}
"""Source: Envoy's "Configuring Envoy as an edge proxy"."""
PICK_TIMEOUT_S: Final = 2.0
"""How long the picker may take before the failure mode decides. A pick takes milliseconds."""
_MODEL_TIMEOUT_S: Final = 10
"""How long the model router may take: without its answer a request can only be refused."""
_UNAVAILABLE: Final = 503
_LATE_ROUTER: Final = f"the model router did not answer in {_MODEL_TIMEOUT_S} s"
_LATE_PICKER: Final = f"the endpoint picker did not answer in {PICK_TIMEOUT_S:g} s"


def _timeout_reply(gateway: Gateway) -> dict[str, Any]:
    """Nothing else here has a time limit: with a 504 of Envoy's own, one of these was late."""
    has_router = gateway.entrance is not None and gateway.entrance.model_router is not None
    said = f"{_LATE_ROUTER}, or {_LATE_PICKER}" if has_router else _LATE_PICKER
    value = {"default_value": 504, "runtime_key": "late_pick"}
    return {
        "filter": {"status_code_filter": {"comparison": {"value": value}}},
        "status_code": _UNAVAILABLE,
        "body_format_override": {"text_format_source": {"inline_string": f"{said}\n"}},
    }


def bootstrap(gateway: Gateway) -> dict[str, Any]:
    """The whole of it; its administration listens on loopback, a local run's on any port."""
    whole = {
        "admin": {"address": socket_address(Address("127.0.0.1", ADMIN_PORT if gateway.entrance else 0))},
        "static_resources": {"listeners": [_listener(gateway)], "clusters": clusters(gateway)},
    }
    if gateway.entrance is None:
        return whole
    # a certificate in a file of its own is for an Envoy with a name
    node = {"id": "gateway", "cluster": "kvtier"}
    runtime = {"layers": [{"name": "fixed", "static_layer": _RUNTIME}]}
    overload = _overload(gateway.entrance.heap_bytes)
    return {"node": node, **whole, "layered_runtime": runtime, "overload_manager": overload}


def _overload(heap_bytes: int) -> dict[str, Any]:
    """Gives memory back, then refuses requests with 503, before the kernel would kill it with all of them."""
    connections = {"max_active_downstream_connections": _MOST_CONNECTIONS}
    return {
        "resource_monitors": [
            extension(
                _HEAP,
                "resource_monitors.fixed_heap.v3.FixedHeapConfig",
                {"max_heap_size_bytes": heap_bytes},
            ),
            extension(
                "envoy.resource_monitors.global_downstream_max_connections",
                "resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
                connections,
            ),
        ],
        "actions": [_action("shrink_heap", 0.9), _action("stop_accepting_requests", 0.95)],
    }


def _action(name: str, share: float) -> dict[str, Any]:
    trigger = {"name": _HEAP, "threshold": {"value": share}}
    return {"name": f"envoy.overload_actions.{name}", "triggers": [trigger]}


def _listener(gateway: Gateway) -> dict[str, Any]:
    """The one URL."""
    manager = {
        "stat_prefix": "gateway",
        # what a client writes there must not choose an engine, or another resource, or be somebody else
        "early_header_mutation_extensions": [
            extension(
                "envoy.http.early_header_mutation.header_mutation",
                "http.early_header_mutation.header_mutation.v3.HeaderMutation",
                {"mutations": [{"remove": name} for name in _forgeable(gateway)]},
            )
        ],
        "local_reply_config": {"mappers": [_timeout_reply(gateway), *key_replies(_keys(gateway))]},
        # a generation may be silent for as long as it takes
        "stream_idle_timeout": UNLIMITED,
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [*_routes(gateway)],
                    "request_body_buffer_limit": gateway.held_bytes,
                }
            ]
        },
        "http_filters": _filters(gateway),
        **({**_FOREIGN_CLIENTS, **tracing(gateway.entrance.traces)} if gateway.entrance else {}),
    }
    kind = "filters.network.http_connection_manager.v3.HttpConnectionManager"
    chain: dict[str, Any] = {
        "filters": [extension("envoy.filters.network.http_connection_manager", kind, manager)]
    }
    if gateway.entrance and gateway.entrance.certificate:
        chain["transport_socket"] = _tls(gateway.entrance.certificate)
    return {
        "name": "gateway",
        "address": socket_address(gateway.listen),
        "per_connection_buffer_limit_bytes": _READ_BYTES,
        "filter_chains": [chain],
    }


def certificate_resource(folder: str) -> dict[str, Any]:
    """The file that says where the certificate is, which Envoy reads again when that changes.

    Args:
        folder: With tls.crt and tls.key, as a mounted Secret has them.
    """
    files = {
        "certificate_chain": {"filename": f"{folder}/tls.crt"},
        "private_key": {"filename": f"{folder}/tls.key"},
    }
    secret = {**any_of("transport_sockets.tls.v3.Secret"), "name": _CERTIFICATE, "tls_certificate": files}
    return {"resources": [secret]}


def _tls(certificate: str) -> dict[str, Any]:
    source = {"path_config_source": {"path": certificate}, "resource_api_version": "V3"}
    common = {
        "alpn_protocols": ["h2", "http/1.1"],
        "tls_certificate_sds_secret_configs": [{"name": _CERTIFICATE, "sds_config": source}],
    }
    kind = "transport_sockets.tls.v3.DownstreamTlsContext"
    return extension("envoy.transport_sockets.tls", kind, {"common_tls_context": common})


def _routes(gateway: Gateway) -> Iterator[dict[str, Any]]:
    if gateway.entrance:
        yield {
            "match": {"path": READY_PATH},
            "direct_response": {"status": 200},
            "typed_per_filter_config": {**_without_ext_proc(gateway), **_unasked(gateway)},
        }
        if "/" not in gateway.entrance.paths:
            kept_back = _keep_back(gateway.entrance.paths)
            yield {**kept_back, "typed_per_filter_config": _without_ext_proc(gateway)}
        for resource in gateway.entrance.others:
            # this gateway's keys are not another's, which is asked in the clear
            removed = (RESOURCE, KEY_HEADER) if gateway.entrance.keys else (RESOURCE,)
            passed_on = _pass_on(resource, removed)
            yield {**passed_on, "typed_per_filter_config": _without_ext_proc(gateway)}
    everything = {"prefix": "/"}
    if isinstance(gateway.engines, EngineService):
        # the picker's answer sets the header and has the route chosen anew
        picked = {"name": DESTINATION, "present_match": True}
        yield {"match": {**everything, "headers": [picked]}, "route": _to(PICKED)}
    if _keys(gateway):
        yield from _open_routes(gateway)
    yield {"match": everything, "route": _to(ENGINES)}


def _open_routes(gateway: Gateway) -> Iterator[dict[str, Any]]:
    """A stranger asks the engines and nobody who holds bodies, and no key goes where none was looked at."""
    methods = {"name": ":method", "string_match": {"safe_regex": {"regex": "|".join(OPEN_METHODS)}}}
    for path in OPEN_PATHS:
        yield {
            "match": {"path": path, "headers": [methods]},
            "route": _to(ENGINES),
            "request_headers_to_remove": [KEY_HEADER],
            "typed_per_filter_config": {**_without_ext_proc(gateway), **_unasked(gateway)},
        }


def _forgeable(gateway: Gateway) -> tuple[str, ...]:
    return (DESTINATION, RESOURCE, *((CLIENT,) if _keys(gateway) else ()))


def _keys(gateway: Gateway) -> Keys | None:
    return gateway.entrance.keys if gateway.entrance else None


def _unasked(gateway: Gateway) -> Mapping[str, Any]:
    return UNASKED if _keys(gateway) else {}


def _keep_back(passed: Sequence[str]) -> dict[str, Any]:
    """A local run has no such route: whoever asks there may ask its engines too."""
    # one for each path: Envoy takes no regex of more than 100 steps
    others = [{"safe_regex": {"regex": f"{re.escape(path)}([/?].*)?"}} for path in passed]
    headers = [{"name": ":path", "string_match": match, "invert_match": True} for match in others]
    json_type = {"header": {"key": "content-type", "value": "application/json"}}
    return {
        "match": {"prefix": "/", "headers": headers},
        "direct_response": {"status": 404, "body": {"inline_string": _KEPT_BACK}},
        "response_headers_to_add": [json_type | {"append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}],
    }


def _pass_on(resource: str, removed: Sequence[str]) -> dict[str, Any]:
    of_resource = {"name": RESOURCE, "string_match": {"exact": resource}}
    first_hand = {"name": _PASSED_ON, "present_match": False}
    return {
        "match": {"prefix": "/", "headers": [of_resource, first_hand]},
        "route": _to(cluster_of(resource)),
        "request_headers_to_add": [{"header": {"key": _PASSED_ON, "value": "true"}}],
        "request_headers_to_remove": [*removed],
    }


def _to(cluster: str) -> dict[str, Any]:
    return {"cluster": cluster, "timeout": UNLIMITED}


def _filters(gateway: Gateway) -> list[dict[str, Any]]:
    """In the order in which a request passes them, and an answer against it."""
    entrance = gateway.entrance
    return [
        *([_silence()] if entrance and not entrance.tells_endpoint else []),
        *key_filters(_keys(gateway)),
        *([_model_router_filter(gateway.body)] if entrance and entrance.model_router else []),
        *([] if gateway.picker is None else [_picker_filter(gateway.picker)]),
        extension("envoy.filters.http.router", "filters.http.router.v3.Router", {}),
    ]


def _without_ext_proc(gateway: Gateway) -> dict[str, Any]:
    """Of a route that neither the model router nor the picker is asked for."""
    names = (
        *((MODEL_ROUTER,) if gateway.entrance and gateway.entrance.model_router else ()),
        *((EXT_PROC,) if gateway.picker else ()),
    )
    disabled = {**any_of("filters.http.ext_proc.v3.ExtProcPerRoute"), "disabled": True}
    return dict.fromkeys(names, disabled)


def _silence() -> dict[str, Any]:
    """Whoever knows which engine served them can aim at those who share their prefix.

    A route's `response_headers_to_remove` would come before the picker writes the header.
    """
    return extension(
        "envoy.filters.http.header_mutation",
        "filters.http.header_mutation.v3.HeaderMutation",
        {"mutations": {"response_mutations": [{"remove": SERVED}]}},
    )


def _model_router_filter(body: BodyMode) -> dict[str, Any]:
    """Gets the body as the picker does: a whole one, which it would pass on as one, is too large for some.

    Without it nobody knows whose a request is, so a request is refused while it is away.
    """
    mode = {**_request_mode(body), "response_header_mode": "SKIP"}
    return _ext_proc(MODEL_ROUTER, MODEL_ROUTER, mode, message_timeout=f"{_MODEL_TIMEOUT_S}s")


def _picker_filter(picker: Picker) -> dict[str, Any]:
    return _ext_proc(
        EXT_PROC,
        PICKER,
        {**_request_mode(picker.body), "response_header_mode": "SEND"},
        failure_mode_allow=picker.failure_mode is FailureMode.FAIL_OPEN,
        metadata_options={"receiving_namespaces": {"untyped": ["envoy.lb"]}},
    )


def _request_mode(body: BodyMode) -> dict[str, str]:
    # a body in parts ends with its trailers, which ext_proc wants to be asked for
    trailers = {"request_trailer_mode": "SEND"} if body is BodyMode.STREAMED else {}
    return {"request_body_mode": body.value, **trailers}


def _ext_proc(name: str, cluster: str, mode: dict[str, str], **settings: Any) -> dict[str, Any]:  # noqa: ANN401 - of Envoy's API
    return extension(
        name,
        "filters.http.ext_proc.v3.ExternalProcessor",
        {
            "grpc_service": {"envoy_grpc": {"cluster_name": cluster}},
            "message_timeout": f"{PICK_TIMEOUT_S:g}s",
            "status_on_error": {"code": _UNAVAILABLE},
            "processing_mode": {"request_header_mode": "SEND", "response_body_mode": "NONE", **mode},
            **settings,
        },
    )
