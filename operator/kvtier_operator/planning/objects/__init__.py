"""One Kubernetes object a file, each a pure function of the Plan."""

from typing import Any

from kvtier_operator.planning.plan import Plan


def build_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """The objects of one Plan, in the order to apply them."""
    del plan
    return ()
