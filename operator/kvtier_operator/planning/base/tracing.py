"""What a process has to know to send spans: OpenTelemetry's own variables, the same for every program.

Who reads which: vLLM 0.32 and 0.33 (vllm/tracing) and kvtier's picker the SDK's, all of these; the inference
extension 1.5 (pkg/common/observability/tracing) the exporter, the endpoint and the sampler with its argument,
llm-d-router (pkg/telemetry) the endpoint and the argument, both without TLS whatever the scheme.
"""

from collections.abc import Mapping

from kvtier_operator.api.spec.tracing import Tracing
from kvtier_operator.planning.base.names import Names


def otel_variables(tracing: Tracing, names: Names, service: str) -> Mapping[str, str]:
    """The variables of a program.

    Args:
        tracing: Where to, and how many.
        names: Of the resource.
        service: The program, as spans name it.
    """
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": tracing.endpoint,
        "OTEL_RESOURCE_ATTRIBUTES": f"service.namespace={names.namespace}",
        "OTEL_SERVICE_NAME": service,
        "OTEL_TRACES_EXPORTER": "otlp",
        # who asked before decides for all behind
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": f"{tracing.sampling_ratio:g}",
    }
