"""PrometheusRule of the operator."""

from typing import Any

from kvtier_operator.install.settings import Installation
from kvtier_operator.planning.objects.monitoring.alerts import Alert, rules_object


def prometheus_rule(install: Installation) -> dict[str, Any]:
    """Alerts about the operator itself; those about engines and pickers come with each resource."""
    ours = f'namespace="{install.namespace}", job="{install.name}"'
    alerts = (
        Alert(
            "KvtierOperatorDown",
            f"absent(up{{{ours}}} == 1)",
            minutes=10,
            severity="warning",
            summary="kvtier's operator has not answered for 10 minutes.",
            description="Engines and pickers go on as they are; changes of KVCacheTiers wait.",
        ),
        Alert(
            "KvtierReconcilesFailing",
            f'sum(rate(kvtier_reconciles_total{{{ours}, result="failed"}}[10m])) > 0',
            minutes=15,
            severity="warning",
            summary="kvtier's operator has failed to reconcile for 15 minutes.",
            description="Its log and the conditions of the KVCacheTiers that are not Ready say why.",
        ),
    )
    return rules_object(install.metadata(), "kvtier-operator", (each.rule({}) for each in alerts))
