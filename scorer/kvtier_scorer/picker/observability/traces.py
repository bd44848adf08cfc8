"""A span for each pick, with its reasons, in the trace of the gateway that asks: OpenTelemetry's SDK.

The SDK reads where to, how many and under which name from its own variables (OTEL_EXPORTER_OTLP_ENDPOINT,
OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME). Load this where traces are wanted alone.
"""

import threading
from collections.abc import Mapping
from time import perf_counter, time_ns
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from kvtier_scorer.config.contract import TRACE_PARENT

_NS_PER_S: Final = 1e9
_SAMPLED: Final = 1
_FLAGS: Final = slice(53, 55)
"""Of `00-TRACE-SPAN-FLAGS`."""
_LENGTH: Final = 55
_END_S: Final = 2.0
"""For what is still to be sent when the picker ends."""


class PickTraces:
    """Begins spans of picks and sends them on a thread of its own."""

    def __init__(self) -> None:
        self._provider = TracerProvider(shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("kvtier.picker")
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, headers: Mapping[str, str], begun_s: float) -> Span | None:
        """The span of a pick; None of a request that is not traced.

        Args:
            headers: Of the request.
            begun_s: When the request had come, by `perf_counter`.
        """
        parent = headers.get(TRACE_PARENT)
        if parent is not None and _is_unsampled(parent):
            return None  # who asks has decided; the SDK would take many times as long to say so
        context = Context() if parent is None else self._propagator.extract({TRACE_PARENT: parent}, Context())
        begun_ns = time_ns() - int((perf_counter() - begun_s) * _NS_PER_S)
        span = self._tracer.start_span("pick", context, kind=SpanKind.SERVER, start_time=begun_ns)
        return span if span.is_recording() else None

    def end(self) -> None:
        """Sends what is left, as far as the collector takes it in time."""
        last = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        last.start()
        last.join(_END_S)


def _is_unsampled(parent: str) -> bool:
    try:
        return len(parent) == _LENGTH and not int(parent[_FLAGS], 16) & _SAMPLED
    except ValueError:
        return False
