"""PodDisruptionBudget of the operator."""

from typing import Any

from kvtier_operator.install.settings import Installation


def pod_disruption_budget(install: Installation) -> dict[str, Any]:
    """Says that the one pod may be evicted: a budget that kept it would block every drain of its node."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": install.metadata(),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": install.selector},
        },
    }
