"""The doctor's verdicts for a person's eye, a log and a pod's termination message."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from kvtier_common.one_line import one_line
from kvtier_operator.doctor.verdict import Severity, Verdict

_MAX_MESSAGE_BYTES: Final = 4096
"""What Kubernetes keeps of a termination message (container-level, debug-running-pod)."""


def worst(verdicts: Iterable[Verdict]) -> Severity:
    """Fail if any check fails, else Warn if any warns."""
    severities = {verdict.severity for verdict in verdicts}
    return next((each for each in (Severity.FAIL, Severity.WARN) if each in severities), Severity.PASS)


def lines(verdicts: Iterable[Verdict]) -> list[str]:
    """One line a verdict."""
    return [f"{verdict.severity:<4}  {verdict}" for verdict in verdicts]


def termination_message(verdicts: Sequence[Verdict]) -> str:
    """What a pod's status says: one line with all failures, or the severity with its warnings as JSON."""
    severity = worst(verdicts)
    lines = [
        one_line(str(verdict), _MAX_MESSAGE_BYTES) for verdict in verdicts if verdict.severity is severity
    ]
    if severity is Severity.FAIL:
        text = ". ".join(lines)
    elif severity is Severity.WARN:
        text = json.dumps({"outcome": severity, "warnings": lines}, ensure_ascii=False)
    else:
        text = json.dumps({"outcome": severity})
    return text.encode()[:_MAX_MESSAGE_BYTES].decode(errors="ignore")
