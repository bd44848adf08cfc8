"""BudgetFits: what memory and disk an engine pod needs, and whether its storage is there."""

from collections.abc import Sequence
from typing import Final

from kvtier_operator.planning.cluster.storage import CLASS_MISSING
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.units import size
from kvtier_operator.planning.verdict import CheckResult, Outcome
from kvtier_operator.reconcile.facts.condition import (
    UntimedCondition,
    false_condition,
    true_condition,
    unknown_condition,
)
from kvtier_operator.reconcile.facts.deployment import DeploymentFacts

TYPE: Final = "BudgetFits"


def budget_fits(plan: Plan, storage: Sequence[CheckResult] = ()) -> UntimedCondition:
    """The condition by the checks about sizes; its message has every line of the pod's memory.

    Args:
        plan: The Plan.
        storage: Which storage classes are missing.
    """
    checks = (*(check for check in plan.checks if check.about_sizes), *storage)
    refused = [check for check in checks if check.outcome is Outcome.REJECT]
    if refused:
        message = "; ".join(f"{check.field}: {check.message}" for check in refused)
        return false_condition(TYPE, refused[0].reason, message)
    lines = ", ".join(f"{line.what} {size(line.bytes)}" for line in plan.budget.memory if line.bytes)
    total = size(sum(line.bytes for line in plan.budget.memory))
    # a request is all that most pods have of their node's disk
    asked = {**plan.budget.requests, **plan.budget.limits}
    others = ", ".join(
        f"{name} {quantity}" for name, quantity in sorted(asked.items()) if name not in ("memory", "cpu")
    )
    return true_condition(
        TYPE,
        "Fits",
        f"an engine pod needs {total} of memory: {lines}" + (f"; and {others}" if others else ""),
    )


def with_engines(condition: UntimedCondition, engine: DeploymentFacts | None) -> UntimedCondition:
    """The condition without a missing storage class where engines have volumes that were made by hand.

    Args:
        condition: The condition without a look at the engines.
        engine: Their Deployment; None where there is none yet.
    """
    if (
        condition.reason != CLASS_MISSING
        or engine is None
        or not (engine.complete and engine.desired_replicas)
    ):
        return condition
    return true_condition(TYPE, "Fits", f"the engines are ready all the same; {condition.message}")


def no_budget() -> UntimedCondition:
    """The condition of a spec that cannot be planned."""
    return unknown_condition(
        TYPE, "NotPlanned", "the spec was not accepted, so there is no budget to look at"
    )
