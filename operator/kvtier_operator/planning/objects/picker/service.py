"""Service of the picker: where the gateway asks."""

from typing import Any

from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.picker.ports import EXT_PROC_PORT, METRICS_PORT
from kvtier_operator.planning.objects.plain_service import PLAIN_SERVICE
from kvtier_operator.planning.plan import Plan


def picker_service(plan: Plan) -> dict[str, Any]:
    """Envoy's ext_proc protocol and the picker's metrics."""
    names = Names.of(plan)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.metadata(names.picker, Component.PICKER),
        "spec": {
            **PLAIN_SERVICE,
            "selector": names.selector(Component.PICKER),
            "ports": [
                {"name": "grpc-ext-proc", "protocol": "TCP", "port": EXT_PROC_PORT},
                {"name": "http-metrics", "protocol": "TCP", "port": METRICS_PORT},
            ],
        },
    }
