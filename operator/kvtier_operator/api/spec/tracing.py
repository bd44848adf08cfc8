"""`spec.observability.tracing`: where gateway, picker and engines send the spans of requests."""

import re

from pydantic import Field

from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.formats import FORBIDDEN_URL, OTLP_URL_PATTERN


class Tracing(ApiModel):
    """OpenTelemetry traces of requests."""

    endpoint: str = Field(
        description="Collector that takes OTLP over gRPC in the clear, such as http://otel-collector.monitoring:4317. vLLM's images have the packages; one of your own needs opentelemetry-sdk and opentelemetry-exporter-otlp.",
        max_length=512,
        pattern=OTLP_URL_PATTERN,
    )
    sampling_ratio: float = Field(
        0.1,
        description="Share of requests that are traced, where whoever asks has not decided already, by the header traceparent.",
        ge=0,
        le=1,
    )

    @rule(
        f"!self.endpoint.matches(r'{FORBIDDEN_URL}')",
        "no collector is at an address of a pod's own machine, its link or a cloud's metadata; write that of its Service",
        field=".endpoint",
    )
    def collector_is_elsewhere(self) -> bool:
        """Gateway, picker and engines are several pods, which have no machine in common."""
        return re.search(FORBIDDEN_URL, self.endpoint) is None
