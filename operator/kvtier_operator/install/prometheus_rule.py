"""PrometheusRule of the operator."""

from typing import Any

from kvtier_operator.install.settings import Install


def prometheus_rule(install: Install) -> dict[str, Any]:
    """Alerts about the operator itself; those about engines and pickers come with each resource."""
    scraped = f'up{{namespace="{install.namespace}", job="{install.name}"}}'
    down = {
        "alert": "KvtierOperatorDown",
        "expr": f"absent({scraped} == 1)",
        "for": "10m",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "kvtier's operator has not answered for 10 minutes.",
            "description": "Engines and pickers go on as they are; changes of KVCacheTiers wait.",
        },
    }
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": install.metadata(),
        "spec": {"groups": [{"name": "kvtier-operator", "rules": [down]}]},
    }
