"""ServiceMonitor of the operator, for a Prometheus operator."""

from typing import Any

from kvtier_operator.install.settings import Installation


def service_monitor(install: Installation) -> dict[str, Any]:
    """Scrapes the operator's own metrics."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": install.metadata(),
        "spec": {
            "selector": {"matchLabels": install.selector},
            "endpoints": [{"port": "metrics", "interval": "30s"}],
        },
    }
