"""InferencePool: the engines as one backend, with the picker that chooses among them."""

from typing import Any, Final

from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.objects.picker.ports import EXT_PROC_PORT
from kvtier_operator.planning.plan import Plan

GROUP: Final = "inference.networking.k8s.io"
KIND: Final = "InferencePool"


def inference_pool(plan: Plan) -> dict[str, Any]:
    """Source: kubernetes-sigs/gateway-api-inference-extension, api/v1/inferencepool_types.go."""
    names = Names.of(plan)
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": KIND,
        "metadata": names.metadata(names.resource, Component.ROUTER),
        "spec": {
            "selector": {"matchLabels": names.selector(Component.ENGINE)},
            "targetPorts": [{"number": plan.engine.port}],
            "endpointPickerRef": {
                "group": "",
                "kind": "Service",
                "name": names.picker,
                "port": {"number": EXT_PROC_PORT},
                "failureMode": plan.resource.spec.router.failure_mode.value,
            },
        },
    }
