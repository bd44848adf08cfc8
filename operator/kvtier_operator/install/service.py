"""Service of the operator."""

from typing import Any

from kvtier_operator.install.settings import METRICS_PORT, Installation


def service(install: Installation) -> dict[str, Any]:
    """Its metrics; headless, since whoever scrapes asks the pod."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": install.metadata(),
        "spec": {
            "clusterIP": "None",
            "selector": install.selector,
            "ports": [{"name": "metrics", "protocol": "TCP", "port": METRICS_PORT, "targetPort": "metrics"}],
        },
    }
