"""A collector of traces: takes OTLP over gRPC and keeps the spans."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)


@dataclass(frozen=True, slots=True)
class Span:
    """One span.

    Attributes:
        service: Who made it.
        name: What it is of.
        trace: Its trace, in hexadecimal digits.
        span: Itself.
        parent: What it is a part of; empty for a whole trace.
        attributes: What it says.
    """

    service: str
    name: str
    trace: str
    span: str
    parent: str
    attributes: dict[str, Any]


@dataclass(slots=True)
class Collector(TraceServiceServicer):
    """What came, and where it listens.

    Attributes:
        port: On loopback.
        spans: In the order in which they came.
    """

    port: int = 0
    spans: list[Span] = field(default_factory=list)

    def Export(  # noqa: N802 - the protocol's name
        self, request: ExportTraceServiceRequest, _: grpc.ServicerContext
    ) -> ExportTraceServiceResponse:
        """Takes spans."""
        for of_resource in request.resource_spans:
            service = _plain(of_resource.resource.attributes).get("service.name", "")
            for of_scope in of_resource.scope_spans:
                self.spans += [
                    Span(
                        service,
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        _plain(span.attributes),
                    )
                    for span in of_scope.spans
                ]
        return ExportTraceServiceResponse()


def _plain(attributes: Any) -> dict[str, Any]:  # noqa: ANN401 - of protobuf
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def running_collector() -> Iterator[Collector]:
    """Starts it on a free port."""
    collector = Collector()
    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    collector.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield collector
    finally:
        server.stop(None).wait()
