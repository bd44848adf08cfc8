"""What both kinds of autoscalers say in the same words."""

from typing import Any

from kvtier_operator.api.spec.engine import Autoscaling
from kvtier_operator.planning.objects.names import Names
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.scaling.behavior import scaling_behavior


def scale_target(plan: Plan) -> dict[str, str]:
    """The engines' Deployment."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": Names.of(plan).engine}


def behavior(plan: Plan, wanted: Autoscaling) -> dict[str, Any]:
    """How fast engines come and go, by the time that they take for it."""
    start_s = plan.budget.fetch_s + plan.budget.startup_s
    return scaling_behavior(wanted, start_s=start_s, grace_s=plan.ending.grace_s)
