"""The verdicts of a plan's checks, and what is left out of it, as lines for standard error."""

from collections.abc import Iterator

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod_template.template import pod_templates
from kvtier_operator.planning.verdict import CheckResult, Outcome, most_important_first


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


def without_pods(source: str, spec: Spec) -> Iterator[str]:
    """One line where a resource adds to its pods, for commands that make none."""
    if templates := ", ".join(pod_templates(spec)):
        yield f"{source}: {templates}: for pods alone, and this makes none: left out"


def _line(source: str, check: CheckResult) -> str:
    return f"{source}: {check.field}: {check.message} ({check.reason})"
