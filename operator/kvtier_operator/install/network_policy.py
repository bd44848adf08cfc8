"""NetworkPolicy of the operator."""

from typing import Any, Final

from kvtier_operator.install.settings import METRICS_PORT, Installation
from kvtier_operator.planning.base.names import (
    COMPONENT_LABEL,
    MANAGED_BY,
    MANAGED_BY_LABEL,
    Component,
)

_DNS_PORT: Final = 53
_API_SERVER_PORTS: Final = (443, 6443)
"""Of the Service `kubernetes` and of the API server behind it: which one a policy sees differs by network."""

_ENGINES: Final = {MANAGED_BY_LABEL: MANAGED_BY, COMPONENT_LABEL: Component.ENGINE.value}
"""Any port of them: which one answers is each resource's choice."""


def network_policy(install: Installation) -> dict[str, Any]:
    """In: metrics (a node's own probes always come in). Out: the API server, names, engines."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": install.metadata(),
        "spec": {
            "podSelector": {"matchLabels": install.selector},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [_port(METRICS_PORT)]}],
            "egress": [
                {"ports": [_port(port) for port in _API_SERVER_PORTS]},
                {"ports": [_port(_DNS_PORT, "UDP"), _port(_DNS_PORT)]},
                {"to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": _ENGINES}}]},
            ],
        },
    }


def _port(number: int, protocol: str = "TCP") -> dict[str, Any]:
    return {"protocol": protocol, "port": number}
