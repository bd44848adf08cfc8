"""PodDisruptionBudget of the engines."""

from typing import Any

from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.plan import Plan


def engine_pdb(plan: Plan) -> dict[str, Any] | None:
    """One engine at a time; None for a single one, which a budget would make undrainable."""
    if plan.resource.spec.most_replicas <= 1:
        return None
    names = Names.of(plan)
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.metadata(names.engine, Component.ENGINE),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": names.selector(Component.ENGINE)}},
    }
