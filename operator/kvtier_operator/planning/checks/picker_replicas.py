"""How many pickers share the traffic."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.plan import CheckResult

_VERDICTS: Final = Verdicts("picker-replicas", "spec.router.replicas")


def picker_replicas(given: CheckInput) -> CheckResult:
    """Each picker keeps an index of its own picks (llm-d-router #1290)."""
    pickers = given.spec.router.replicas
    if pickers > 1:
        return _VERDICTS.warn(
            "IndexDivided",
            f"{pickers} pickers do not share what they know: each sees about 1/{pickers} of the requests, "
            "and prefix hits fall accordingly; use 1",
        )
    return _VERDICTS.passed("one picker sees all requests")
