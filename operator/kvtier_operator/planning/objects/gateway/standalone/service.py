"""Service of the gateway: the one URL of clients."""

from typing import Any

from kvtier_operator.api.spec.router import Standalone
from kvtier_operator.planning.objects.gateway.standalone.envoy import HTTP_PORT, HTTPS_PORT
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.objects.plain_service import PLAIN_SERVICE
from kvtier_operator.planning.plan import Plan


def gateway_service(plan: Plan, wanted: Standalone) -> dict[str, Any]:
    """HTTP, or HTTPS where there is a certificate."""
    names = Names.of(plan)
    name, number = ("https", HTTPS_PORT) if wanted.tls_secret_name else ("http", HTTP_PORT)
    port = {"name": name, "protocol": "TCP", "port": number, "targetPort": "http", "appProtocol": name}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.metadata(names.gateway, Component.GATEWAY),
        "spec": {**PLAIN_SERVICE, "selector": names.selector(Component.GATEWAY), "ports": [port]},
    }
