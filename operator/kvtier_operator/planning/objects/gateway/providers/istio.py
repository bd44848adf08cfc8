"""Istio must be told that the picker serves TLS with a certificate that it signed itself.

Source: llm-d-router v0.10.0, config/charts/llm-d-router-gateway/templates/istio.yaml; the inference
extension's chart makes the same. istiod itself must run with ENABLE_GATEWAY_API_INFERENCE_EXTENSION=true.
"""

from typing import Any, Final

from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.gateway.providers.provider import Provider
from kvtier_operator.planning.plan import Plan


def _objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    return (_destination_rule(plan),)


def _destination_rule(plan: Plan) -> dict[str, Any]:
    names = Names.of(plan)
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "DestinationRule",
        "metadata": names.metadata(names.picker, Component.PICKER),
        "spec": {
            # Without dots: Istio completes it with the rule's namespace and the cluster's own domain, which
            # is not cluster.local everywhere (istio.io, DestinationRule, `host`)
            "host": names.picker,
            "trafficPolicy": {"tls": {"mode": "SIMPLE", "insecureSkipVerify": True}},
        },
    }


_HBONE_PORT: Final = 15008
"""Where a pod of the ambient mesh gets what is sent to any of its ports. Source: istio.io, "Ambient and
Kubernetes NetworkPolicy"."""

ISTIO: Final = Provider(objects=_objects, proxies_beside_gateway=True, mesh_ports=(_HBONE_PORT,))
