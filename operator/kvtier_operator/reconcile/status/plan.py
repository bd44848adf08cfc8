"""The conditions that a plan alone decides: Accepted, BudgetFits and NodesFit."""

from collections.abc import Sequence
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.tiers import fields_of
from kvtier_operator.errors import Problem
from kvtier_operator.planning.cluster.nodes_fit import NodesFit
from kvtier_operator.planning.cluster.storage import CLASS_MISSING
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.report.rollout import nobody_serves
from kvtier_operator.planning.units import many, size
from kvtier_operator.planning.verdict import CheckResult, Outcome, most_important_first
from kvtier_operator.reconcile.facts.cached_plan import (
    UntimedCondition,
    false_condition,
    true_condition,
    unknown_condition,
)
from kvtier_operator.reconcile.facts.objects import DeploymentFacts

ACCEPTED: Final = "Accepted"
_KEPT: Final = "nothing was changed: what runs keeps running as it was"
BUDGET_FITS: Final = "BudgetFits"
NODES_FIT: Final = "NodesFit"


def accepted_condition(plan: Plan) -> UntimedCondition:
    """The condition by the plan's checks, with every rejection, or every warning of an accepted spec."""
    rejections = [check for check in plan.checks if check.outcome is Outcome.REJECT]
    if rejections:
        return false_condition(ACCEPTED, rejections[0].reason, f"{_lines(rejections)}; {_KEPT}")
    spec = plan.resource.spec
    ranks = spec.engine.ranks
    few = f"{spec.least_replicas} to " if spec.least_replicas < spec.most_replicas else ""
    pods = f"{few}{many(spec.most_replicas, 'engine pod')} of {many(ranks, 'rank')}"
    gap = nobody_serves(plan)
    alone = f"; {gap}" if gap else ""
    what = f"{spec.model.name} on backend {spec.backend.value}, {pods}"
    warnings = [check for check in most_important_first(plan.checks) if check.outcome is Outcome.WARN]
    if warnings:
        return true_condition(
            ACCEPTED, "AcceptedWithWarnings", f"{what}; to look at: {_lines(warnings)}{alone}"
        )
    return true_condition(ACCEPTED, "Accepted", f"{what}; {len(plan.checks)} checks passed{alone}")


def attach_accepted_condition(spec: Spec) -> UntimedCondition:
    """The condition of a spec whose tiers go to pods that others own."""
    wanted = spec.tiers.by_tier()
    tiers = ", ".join(f"{fields_of(tier).title} {size(wanted[tier].capacity.bytes)}" for tier in wanted)
    return true_condition(ACCEPTED, "Accepted", f"tiers for pods that others own: {tiers}")


def not_valid(problems: Sequence[Problem]) -> UntimedCondition:
    """The condition of a spec that the API's models refuse although the API server took it."""
    text = "; ".join(str(problem) for problem in problems)
    return false_condition(ACCEPTED, "Invalid", f"{text}; {_KEPT}")


def _lines(checks: Sequence[CheckResult]) -> str:
    return "; ".join(f"{check.field}: {check.message}" for check in checks)


def budget_fits(plan: Plan, storage: Sequence[CheckResult] = ()) -> UntimedCondition:
    """The condition by the checks about sizes; its message has every line of the pod's memory."""
    checks = (*(check for check in plan.checks if check.about_sizes), *storage)
    refused = [check for check in checks if check.outcome is Outcome.REJECT]
    if refused:
        message = "; ".join(f"{check.field}: {check.message}" for check in refused)
        return false_condition(BUDGET_FITS, refused[0].reason, message)
    lines = ", ".join(f"{line.what} {size(line.bytes)}" for line in plan.budget.memory if line.bytes)
    total = size(sum(line.bytes for line in plan.budget.memory))
    # a request is all that most pods have of their node's disk
    asked = {**plan.budget.requests, **plan.budget.limits}
    others = ", ".join(
        f"{name} {quantity}" for name, quantity in sorted(asked.items()) if name not in ("memory", "cpu")
    )
    return true_condition(
        BUDGET_FITS,
        "Fits",
        f"an engine pod needs {total} of memory: {lines}" + (f"; and {others}" if others else ""),
    )


def with_engines(condition: UntimedCondition, engine: DeploymentFacts | None) -> UntimedCondition:
    """The condition without a missing storage class where engines have volumes that were made by hand."""
    if (
        condition.reason != CLASS_MISSING
        or engine is None
        or not (engine.complete and engine.desired_replicas)
    ):
        return condition
    return true_condition(BUDGET_FITS, "Fits", f"the engines are ready all the same; {condition.message}")


def nodes_fit_condition(fit: NodesFit) -> UntimedCondition:
    """The condition by how many engines fit on the nodes; other pods on them are the scheduler's business."""
    return (true_condition if fit.fits else false_condition)(NODES_FIT, fit.reason, fit.message)


def nodes_not_seen_condition(why: str) -> UntimedCondition:
    """The condition while the operator may not, or could not yet, list nodes."""
    return unknown_condition(NODES_FIT, "NodesNotSeen", f"nodes were not looked at: {why}")


NO_BUDGET: Final = unknown_condition(
    BUDGET_FITS, "NotPlanned", "the spec was not accepted, so there is no budget to look at"
)
NO_POD: Final = unknown_condition(
    NODES_FIT, "NotPlanned", "the spec was not accepted, so there is no pod to find a node for"
)
"""The conditions of a spec that cannot be planned."""
