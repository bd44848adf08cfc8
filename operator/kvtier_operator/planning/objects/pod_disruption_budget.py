"""PodDisruptionBudget of pods that are all alike: engines, or the gateway's Envoys."""

from typing import Any

from kvtier_operator.planning.base.names import Component, Names


def pod_disruption_budget(
    names: Names, name: str, component: Component, most_pods: int
) -> dict[str, Any] | None:
    """One pod at a time; None for a single one, which a budget would make undrainable.

    Args:
        names: Of the resource's objects.
        name: The budget's.
        component: Whose pods.
        most_pods: How many there may be.
    """
    if most_pods <= 1:
        return None
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.metadata(name, component),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": names.selector(component)}},
    }
