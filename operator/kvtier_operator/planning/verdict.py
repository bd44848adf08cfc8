"""What one check says of a plan."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What a check says."""

    PASS = "Pass"  # noqa: S105 - not a password
    WARN = "Warn"
    REJECT = "Reject"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Verdict of one check.

    Attributes:
        name: The check.
        outcome: Pass, Warn or Reject.
        reason: CamelCase, as in a condition.
        message: One line with the numbers, naming the field and what to do.
        field: Path of the field it is about.
    """

    name: str
    outcome: Outcome
    reason: str
    message: str
    field: str
