"""PrometheusRule of the operator."""

from typing import Any

from kvtier_operator.install.settings import Installation


def prometheus_rule(install: Installation) -> dict[str, Any]:
    """Alerts about the operator itself; those about engines and pickers come with each resource."""
    ours = f'namespace="{install.namespace}", job="{install.name}"'
    down = {
        "alert": "KvtierOperatorDown",
        "expr": f"absent(up{{{ours}}} == 1)",
        "for": "10m",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "kvtier's operator has not answered for 10 minutes.",
            "description": "Engines and pickers go on as they are; changes of KVCacheTiers wait.",
        },
    }
    failing = {
        "alert": "KvtierReconcilesFailing",
        "expr": f'sum(rate(kvtier_reconciles_total{{{ours}, result="failed"}}[10m])) > 0',
        "for": "15m",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "kvtier's operator has failed to reconcile for 15 minutes.",
            "description": "Its log and the conditions of the KVCacheTiers that are not Ready say why.",
        },
    }
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": install.metadata(),
        "spec": {"groups": [{"name": "kvtier-operator", "rules": [down, failing]}]},
    }
