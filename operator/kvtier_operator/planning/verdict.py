"""What one check says of a plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


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


_AS_WRITTEN: Final = "runs it as it is written"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Makes one check's verdicts.

    Attributes:
        name: The check.
        field: Path of the field that it is about, unless a verdict names another.
    """

    name: str
    field: str

    def passed(self, message: str, *, reason: str = "Passed", field: str = "") -> CheckResult:
        """Nothing to do; the message says what was found."""
        return CheckResult(self.name, Outcome.PASS, reason, message, field or self.field)

    def warn(
        self, reason: str, message: str, *, by_itself: str = _AS_WRITTEN, field: str = ""
    ) -> CheckResult:
        """It will run, but not as a reader may expect.

        Args:
            reason: CamelCase.
            message: What is found, and what its reader can do.
            by_itself: What becomes of it if that is nothing, after "by itself kvtier".
            field: Path of the field that it is about, in place of the check's.
        """
        full_message = f"{message}; by itself kvtier {by_itself}"
        return CheckResult(self.name, Outcome.WARN, reason, full_message, field or self.field)

    def reject(self, reason: str, message: str, *, field: str = "") -> CheckResult:
        """It cannot run."""
        return CheckResult(self.name, Outcome.REJECT, reason, message, field or self.field)

    def reject_each(self, reason: str, faults: Sequence[tuple[str, str]]) -> CheckResult:
        """The same for several things at once, so that nobody mends one to be told the next.

        Args:
            reason: As for one.
            faults: Field and message of each; at least one.
        """
        (field, first), *others = faults
        message = "; ".join((first, *(f"{place}: {text}" for place, text in others)))
        return self.reject(reason, message, field=field)
