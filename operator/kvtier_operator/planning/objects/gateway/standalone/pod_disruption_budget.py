"""PodDisruptionBudget of the gateway."""

from typing import Any

from kvtier_operator.api.spec.gateway import Standalone
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.plan import Plan


def gateway_pdb(plan: Plan, wanted: Standalone) -> dict[str, Any] | None:
    """One Envoy at a time; None for a single one, which a budget would make undrainable."""
    if wanted.replicas == 1:
        return None
    names = Names.of(plan)
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.metadata(names.gateway, Component.GATEWAY),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": names.selector(Component.GATEWAY)}},
    }
