"""Where a pod may run, how it ranks among others, and what its images are pulled with."""

from typing import Any

from kvtier_operator.api.spec.engine import EngineSpec
from kvtier_operator.api.spec.router import RouterSpec
from kvtier_operator.planning.plan import Plan


def placement(plan: Plan, spec: EngineSpec | RouterSpec) -> dict[str, Any]:
    """Fields of a pod's spec; those that say nothing are left out."""
    tolerations = [
        each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in spec.tolerations
    ]
    fields = {
        "imagePullSecrets": [{"name": name} for name in plan.pull_secrets],
        "priorityClassName": spec.priority_class_name,
        "nodeSelector": dict(spec.node_selector),
        "tolerations": tolerations,
        "affinity": spec.affinity,
    }
    return {name: value for name, value in fields.items() if value}
