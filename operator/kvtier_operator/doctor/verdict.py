"""The verdict of one check, and verdicts for a person's eye, a log and a pod's termination message."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from kvtier_common.one_line import one_line


class Severity(StrEnum):
    """How bad a finding is."""

    PASS = "Pass"  # noqa: S105 - not a password
    WARN = "Warn"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the engine is about to start."""

    name: str  # for a reader, such as `node gpu-3` or `this machine`
    in_pod: bool  # whether it is a pod, whose limits come from its containers' resources


@dataclass(frozen=True, slots=True)
class Verdict:
    """One check's verdict."""

    check: str  # the check
    severity: Severity  # pass, Warn or Fail
    message: str  # one line: what, needed, found and, unless it passes, what to do

    @classmethod
    def passed(cls, check: str, message: str) -> Self:
        """Nothing to do."""
        return cls(check, Severity.PASS, message)

    @classmethod
    def warned(cls, check: str, message: str) -> Self:
        """The engine runs, but not as a reader may expect."""
        return cls(check, Severity.WARN, message)

    @classmethod
    def failed(cls, check: str, message: str) -> Self:
        """The engine cannot run, or must not."""
        return cls(check, Severity.FAIL, message)

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


_MAX_MESSAGE_BYTES: Final = 4096
"""What Kubernetes keeps of a termination message (container-level, debug-running-pod)."""


def worst(verdicts: Iterable[Verdict]) -> Severity:
    """Fail if any check fails, else Warn if any warns."""
    return worst_of(verdict.severity for verdict in verdicts)


def worst_of(severities: Iterable[Severity]) -> Severity:
    """The same of severities alone."""
    there = set(severities)
    return next((worst for worst in (Severity.FAIL, Severity.WARN) if worst in there), Severity.PASS)


def lines(verdicts: Iterable[Verdict]) -> list[str]:
    """One line a verdict."""
    return [f"{verdict.severity:<4}  {verdict}" for verdict in verdicts]


def fields(verdicts: Sequence[Verdict]) -> dict[str, object]:
    """The same for a program: the outcome of all, and a finding a verdict."""
    return {
        "outcome": worst(verdicts),
        "findings": [
            {"check": verdict.check, "outcome": verdict.severity, "message": verdict.message}
            for verdict in verdicts
        ],
    }


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
