"""InferencePool: the engines as one backend, with the picker that chooses among them."""

from typing import Any, Final

from kvtier_operator.api.spec.router import RouterSpec
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.objects.picker.ports import EXT_PROC_PORT
from kvtier_operator.planning.plan import Plan

GROUP: Final = "inference.networking.k8s.io"
KIND: Final = "InferencePool"


def has_pool(router: RouterSpec) -> bool:
    """Whether there is a pool, for a gateway or for the picker.

    Behind kvtier's own gateway pickers that can find the engines by their labels, so that the cluster need
    not know InferencePools.
    """
    return router.standalone is None or flavor_traits(router.flavor).needs_pool


def inference_pool(plan: Plan) -> dict[str, Any] | None:
    """Source: kubernetes-sigs/gateway-api-inference-extension, api/v1/inferencepool_types.go."""
    if not has_pool(plan.resource.spec.router):
        return None
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
