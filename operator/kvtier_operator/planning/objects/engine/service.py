"""Service of the engines, for those who do not come through a gateway."""

from typing import Any

from kvtier_operator.planning.arguments.extra_args import serves_tls
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.plain_service import PLAIN_SERVICE
from kvtier_operator.planning.plan import Plan


def engine_service(plan: Plan) -> dict[str, Any]:
    """Any ready engine, without regard to what it holds."""
    names = Names.of(plan)
    port = {"name": "http", "protocol": "TCP", "port": plan.engine.port, "targetPort": "http"}
    if serves_tls(plan.resource.spec.engine):
        port["appProtocol"] = "https"
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.metadata(names.engine, Component.ENGINE),
        "spec": {**PLAIN_SERVICE, "selector": names.selector(Component.ENGINE), "ports": [port]},
    }
