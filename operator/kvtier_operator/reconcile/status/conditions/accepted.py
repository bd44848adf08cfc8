"""Accepted: whether the spec can be acted on."""

from collections.abc import Sequence
from typing import Final

from kvtier_operator.errors import Problem
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.units import many
from kvtier_operator.planning.verdict import CheckResult, Outcome, most_important_first
from kvtier_operator.reconcile.facts.condition import UntimedCondition, false_condition, true_condition

TYPE: Final = "Accepted"
_KEPT: Final = "nothing was changed: what runs keeps running as it was"


def accepted(plan: Plan) -> UntimedCondition:
    """The condition by the plan's checks, with every rejection, or every warning of an accepted spec."""
    rejections = [check for check in plan.checks if check.outcome is Outcome.REJECT]
    if rejections:
        return false_condition(TYPE, rejections[0].reason, f"{_lines(rejections)}; {_KEPT}")
    spec = plan.resource.spec
    ranks = spec.engine.tensor_parallel_size * spec.engine.data_parallel_size
    few = f"{spec.least_replicas} to " if spec.least_replicas < spec.most_replicas else ""
    pods = f"{few}{many(spec.most_replicas, 'engine pod')} of {many(ranks, 'rank')}"
    what = f"{spec.model.name} on backend {spec.backend.value}, {pods}"
    warnings = [check for check in most_important_first(plan.checks) if check.outcome is Outcome.WARN]
    if warnings:
        return true_condition(TYPE, "AcceptedWithWarnings", f"{what}; to look at: {_lines(warnings)}")
    return true_condition(TYPE, "Accepted", f"{what}; {len(plan.checks)} checks passed")


def not_valid(problems: Sequence[Problem]) -> UntimedCondition:
    """The condition of a spec that the API's models refuse although the API server took it."""
    text = "; ".join(str(problem) for problem in problems)
    return false_condition(TYPE, "Invalid", f"{text}; {_KEPT}")


def _lines(checks: Sequence[CheckResult]) -> str:
    return "; ".join(f"{check.field}: {check.message}" for check in checks)
