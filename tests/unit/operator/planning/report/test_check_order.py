"""What a reader of warnings reads first, and that each says what becomes of it."""

import pytest
from tests.cases.planning import resource

from kvtier_operator.cli.inputs.plans import remarks
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.report.explain import explain
from kvtier_operator.planning.report.fields import report
from kvtier_operator.planning.verdict import CheckResult, Outcome, most_important_first
from kvtier_operator.reconcile.status.plan import accepted_condition


@pytest.fixture(scope="module")
def plan() -> Plan:
    """With a small model on a large GPU, a disk that is slow beside it, and whatever else is warned of."""
    return make_plan(
        resource(
            "Qwen/Qwen3-0.6B",
            cpu="10Gi",
            backend="LMCache",
            engine={"tensorParallelSize": 2, "gpuMemory": "80Gi"},
            tiers={"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}},
            router={"replicas": 2},
        ),
        Observed(),
    )


def warnings(checks: object) -> list[str]:
    assert isinstance(checks, list | tuple)
    return [check.reason for check in checks if check.outcome is Outcome.WARN]


def test_a_tier_that_does_not_pay_is_said_first(plan: Plan) -> None:
    assert warnings(plan.checks)[0] != "TierDoesNotPay", "of no use: it is first without anybody's doing"
    assert warnings(most_important_first(plan.checks))[:2] == ["TierDoesNotPay", "TierAddsNothing"]


def test_wherever_warnings_are_read(plan: Plan) -> None:
    said = [check["reason"] for check in report(plan)["checks"] if check["outcome"] == "Warn"]
    assert said[0] == "TierDoesNotPay"
    assert remarks("cr.yaml", plan)[0].endswith("(TierDoesNotPay)")
    assert "to look at: spec.tiers.disk: loading from disk" in accepted_condition(plan).message
    text = explain(plan)
    assert text.index("TierDoesNotPay") < text.index("TierAddsNothing") < text.index("geometry ─")


def test_the_end_of_a_long_report_leads_to_its_top(plan: Plan) -> None:
    text = explain(plan)
    loud = len(warnings(plan.checks))
    assert f"{loud} to look at ─" in text.splitlines()[2]
    assert f"passed, {loud} to look at (at the top) ─" in text


def test_refusals_go_before_warnings_and_those_before_what_passed() -> None:
    def one(outcome: Outcome, weight: int = 0) -> CheckResult:
        return CheckResult("any", outcome, "Any", "", "", weight=weight)

    results = (
        one(Outcome.PASS),
        one(Outcome.WARN, -10),
        one(Outcome.WARN),
        one(Outcome.WARN, 10),
        one(Outcome.REJECT),
    )
    assert most_important_first(results) == list(reversed(results))


def test_each_warning_says_what_becomes_of_it(plan: Plan) -> None:
    said = [check.message for check in plan.checks if check.outcome is Outcome.WARN]
    assert len(said) > 3
    for message in said:
        assert "; otherwise kvtier " in message
