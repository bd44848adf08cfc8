"""The verdicts of a plan's checks as lines for standard error."""

from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.report.check_order import most_important_first
from kvtier_operator.planning.verdict import CheckResult, Outcome


def refusals(source: str, plan: Plan) -> tuple[str, ...]:
    """One line for each check that refuses the plan: where, which field, what to do."""
    return tuple(_line(source, check) for check in plan.checks if check.outcome is Outcome.REJECT)


def remarks(source: str, plan: Plan) -> tuple[str, ...]:
    """The same, and one line for each warning."""
    return tuple(
        _line(source, check)
        for check in most_important_first(plan.checks)
        if check.outcome is not Outcome.PASS
    )


def _line(source: str, check: CheckResult) -> str:
    return f"{source}: {check.field}: {check.message} ({check.reason})"
