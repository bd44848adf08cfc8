"""What more than one picker is for."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("picker-replicas", "spec.router.replicas")


def picker_replicas(given: CheckInput) -> CheckResult:
    """Upstream's pickers elect a leader, which answers alone; what it knows of prefixes ends with it.

    The times are llm-d-router's, 0.9 and 0.10, as measured: 0.7 to 2 s, and 16 to 18 s. A leader that ends by
    itself gives its lease back; that of one that was killed has to run out (15 s) and be asked for.
    """
    pickers = given.spec.router.replicas
    if pickers > 1:
        return _VERDICTS.warn(
            "StandbyStartsEmpty",
            f"of {pickers} pickers one serves, and the others stand by with an empty index: they take over "
            "by themselves, within 2 s of one that is asked to end and 18 s of one that is killed, and learn "
            "where prefixes are from new requests; they do not serve more requests than one",
        )
    return _VERDICTS.passed("one picker sees all requests")
