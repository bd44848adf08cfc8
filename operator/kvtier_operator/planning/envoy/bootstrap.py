"""Envoy's bootstrap.

Sources: Envoy 1.40's API v3 (ext_proc, override_host, original_dst, header_mutation, overload_manager)
and the endpoint picker protocol of kubernetes-sigs/gateway-api-inference-extension
(docs/proposals/004-endpoint-picker-protocol). llm-d-router's standalone chart sets an Envoy up in the same
place (config/charts/llm-d-router-standalone).
"""

from typing import Any, Final

from kvtier_operator.planning.envoy.clusters import clusters
from kvtier_operator.planning.envoy.extensions import extension, socket_address
from kvtier_operator.planning.envoy.gateway import Address, Gateway
from kvtier_operator.planning.envoy.listener import listener

ADMIN_PORT: Final = 19000
"""Of an entrance's administration, on loopback."""
_MOST_CONNECTIONS: Final = 20_000
# clients that reset their requests, or leave with many of them open, take turns with all others
_RUNTIME: Final = {"http.max_requests_per_io_cycle": 1, "overload.premature_reset_total_stream_count": 50}
_HEAP: Final = "envoy.resource_monitors.fixed_heap"


def bootstrap(gateway: Gateway) -> dict[str, Any]:
    """The whole of it; its administration listens on loopback, a local run's on any port."""
    whole = {
        "admin": {"address": socket_address(Address("127.0.0.1", ADMIN_PORT if gateway.entrance else 0))},
        "static_resources": {"listeners": [listener(gateway)], "clusters": clusters(gateway)},
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
