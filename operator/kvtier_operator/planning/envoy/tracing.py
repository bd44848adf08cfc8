"""Spans of the entrance: each request begins a trace, or goes on with the one of whoever asks.

Source: Envoy 1.40's tracer opentelemetry, which reads and writes the header traceparent.
"""

from typing import Any

from kvtier_operator.planning.envoy.clusters import TRACES
from kvtier_operator.planning.envoy.gateway import Traces


def tracing(traces: Traces | None) -> dict[str, Any]:
    """A part of the connection manager's settings."""
    if traces is None:
        return {}
    provider = {
        "name": "envoy.tracers.opentelemetry",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig",
            "grpc_service": {"envoy_grpc": {"cluster_name": TRACES}, "timeout": "10s"},
            "service_name": traces.service,
        },
    }
    return {"tracing": {"provider": provider, "random_sampling": {"value": traces.sampling_ratio * 100}}}
