"""Envoy's one listener: who may come in, and which way a request goes."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kvtier_operator.planning.envoy.clusters import ENGINES, PICKED, cluster_of
from kvtier_operator.planning.envoy.extensions import UNLIMITED, any_of, extension, socket_address
from kvtier_operator.planning.envoy.filters import LATE_PICK, http_filters, unasked
from kvtier_operator.planning.envoy.gateway import EngineService, Gateway
from kvtier_scorer.config.contract import DESTINATION, RESOURCE

READY_PATH: Final = "/gateway/ready"
"""Answers 200 by itself, to whoever can reach the gateway at all."""
CERTIFICATE: Final = "server"
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


def listener(gateway: Gateway) -> dict[str, Any]:
    """The one URL."""
    manager = {
        "stat_prefix": "gateway",
        # what a client writes there must not choose an engine, or another resource
        "early_header_mutation_extensions": [
            extension(
                "envoy.http.early_header_mutation.header_mutation",
                "http.early_header_mutation.header_mutation.v3.HeaderMutation",
                {"mutations": [{"remove": name} for name in (DESTINATION, RESOURCE)]},
            )
        ],
        "local_reply_config": {"mappers": [LATE_PICK]},
        # a generation may be silent for as long as it takes
        "stream_idle_timeout": UNLIMITED,
        "route_config": {"virtual_hosts": [_host(gateway)]},
        "http_filters": http_filters(gateway),
        **(_FOREIGN_CLIENTS if gateway.entrance else {}),
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


def _host(gateway: Gateway) -> dict[str, Any]:
    routes = [*_routes(gateway)]
    body = {"request_body_buffer_limit": gateway.held_bytes}
    return {"name": "all", "domains": ["*"], "routes": routes, **body}


def certificate_resource(folder: str) -> dict[str, Any]:
    """The file that says where the certificate is, which Envoy reads again when that changes.

    Args:
        folder: With tls.crt and tls.key, as a mounted Secret has them.
    """
    files = {
        "certificate_chain": {"filename": f"{folder}/tls.crt"},
        "private_key": {"filename": f"{folder}/tls.key"},
    }
    secret = {**any_of("transport_sockets.tls.v3.Secret"), "name": CERTIFICATE, "tls_certificate": files}
    return {"resources": [secret]}


def _tls(certificate: str) -> dict[str, Any]:
    source = {"path_config_source": {"path": certificate}, "resource_api_version": "V3"}
    common = {
        "alpn_protocols": ["h2", "http/1.1"],
        "tls_certificate_sds_secret_configs": [{"name": CERTIFICATE, "sds_config": source}],
    }
    kind = "transport_sockets.tls.v3.DownstreamTlsContext"
    return extension("envoy.transport_sockets.tls", kind, {"common_tls_context": common})


def _routes(gateway: Gateway) -> Iterator[dict[str, Any]]:
    if gateway.entrance:
        yield {"match": {"path": READY_PATH}, "direct_response": {"status": 200}, **unasked(gateway)}
        if "/" not in gateway.entrance.paths:
            yield {**_kept_back(gateway.entrance.paths), **unasked(gateway)}
        for resource in gateway.entrance.others:
            yield {**_passed_on(resource), **unasked(gateway)}
    everything = {"prefix": "/"}
    if isinstance(gateway.engines, EngineService):
        # the picker's answer sets the header and has the route chosen anew
        named = {"name": DESTINATION, "present_match": True}
        yield {"match": {**everything, "headers": [named]}, "route": _to(PICKED)}
    yield {"match": everything, "route": _to(ENGINES)}


def _kept_back(passed: Sequence[str]) -> dict[str, Any]:
    """A local run has no such route: whoever asks there may ask its engines too."""
    # one for each path: Envoy takes no regex of more than 100 steps
    others = [{"safe_regex": {"regex": f"{re.escape(path)}([/?].*)?"}} for path in passed]
    headers = [{"name": ":path", "string_match": each, "invert_match": True} for each in others]
    json_type = {"header": {"key": "content-type", "value": "application/json"}}
    return {
        "match": {"prefix": "/", "headers": headers},
        "direct_response": {"status": 404, "body": {"inline_string": _KEPT_BACK}},
        "response_headers_to_add": [json_type | {"append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}],
    }


def _passed_on(resource: str) -> dict[str, Any]:
    named = {"name": RESOURCE, "string_match": {"exact": resource}}
    first_hand = {"name": _PASSED_ON, "present_match": False}
    return {
        "match": {"prefix": "/", "headers": [named, first_hand]},
        "route": _to(cluster_of(resource)),
        "request_headers_to_add": [{"header": {"key": _PASSED_ON, "value": "true"}}],
        "request_headers_to_remove": [RESOURCE],
    }


def _to(cluster: str) -> dict[str, Any]:
    return {"cluster": cluster, "timeout": UNLIMITED}
