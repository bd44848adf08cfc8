"""How each check is seen to pass, warn and reject: one table a check would not be shorter."""

from tests.cases.planning import check_input

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.check import Check
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.verdict import CheckResult, Outcome

PASS, WARN, REJECT = Outcome.PASS, Outcome.WARN, Outcome.REJECT


def verdict(check: Check, one: KVCacheTier, observed: Observed | None = None) -> CheckResult:
    """What a check says of a resource; a message is one line."""
    result = check(check_input(one, observed))
    assert "\n" not in result.message
    return result


def says(result: CheckResult, outcome: Outcome, reason: str, *words: str) -> None:
    """Assert outcome, reason and every word of the message."""
    assert (result.outcome, result.reason) == (outcome, reason), result.message
    for word in words:
        assert word in result.message, result.message
