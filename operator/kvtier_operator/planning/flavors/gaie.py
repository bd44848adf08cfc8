"""The Gateway API inference extension's picker, 1.4 and 1.5."""

from typing import Final

from kvtier_operator.planning.flavors.traits import FlavorTraits

TRAITS: Final = FlavorTraits(
    title="the inference extension's picker",
    image="registry.k8s.io/gateway-api-inference-extension/epp:v{version}",
    tls_args=("--model-server-metrics-scheme=https",),  # llm-d-router has it in its configuration
    objectives=("inference.networking.x-k8s.io",),
    # v1.4.0 and v1.5.0, pkg/epp/metrics/metrics.go
    hit_ratio="inference_extension_prefix_indexer_hit_ratio",
    # 1.4 and 1.5 end at start with "name must not be empty" (v1.5.0 cmd/epp/runner/runner.go,
    # NewEndpointPoolFromOptions)
    needs_pool=True,
)
