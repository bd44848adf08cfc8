"""The doctor's verdicts for a person's eye, a log and a pod's termination message."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from kvtier_operator.doctor.verdict import Outcome, Verdict

_MAX_MESSAGE_BYTES: Final = 4096
"""What Kubernetes keeps of a termination message (container-level, debug-running-pod)."""


def worst(verdicts: Iterable[Verdict]) -> Outcome:
    """Fail if any check fails, else Warn if any warns."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return next((each for each in (Outcome.FAIL, Outcome.WARN) if each in outcomes), Outcome.PASS)


def lines(verdicts: Iterable[Verdict]) -> list[str]:
    """One line a verdict."""
    return [f"{verdict.outcome:<4}  {verdict}" for verdict in verdicts]


def termination_message(verdicts: Sequence[Verdict]) -> str:
    """What a pod's status says: one line of all failures, or the outcome with its warnings as JSON."""
    outcome = worst(verdicts)
    told = [str(verdict) for verdict in verdicts if verdict.outcome is outcome]
    if outcome is Outcome.FAIL:
        text = ". ".join(told)
    elif outcome is Outcome.WARN:
        text = json.dumps({"outcome": outcome, "warnings": told}, ensure_ascii=False)
    else:
        text = json.dumps({"outcome": outcome})
    return text.encode()[:_MAX_MESSAGE_BYTES].decode(errors="ignore")
