"""What one check says of a plan."""

from collections.abc import Iterable, Sequence
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
    """Verdict of one check."""

    name: str  # the check
    outcome: Outcome  # pass, Warn or Reject
    reason: str  # CamelCase, as in a condition
    message: str  # one line with the numbers, naming the field and what to do
    field: str  # path of the field it is about
    about_sizes: bool = False  # whether it is about what memory and disk a pod needs
    # where it stands among those of its outcome, the heaviest first. Of warnings: from 190 on the tiers
    # bring nothing; above 0 engines may not start or may end, requests may fail or get what is
    # another's; at 0 it costs speed, tokens or hits; below, nothing
    weight: int = 0


_OUTCOMES: Final = (Outcome.REJECT, Outcome.WARN, Outcome.PASS)


def most_important_first(results: Iterable[CheckResult]) -> list[CheckResult]:
    """Refusals, then warnings by what they cost, then what passed; otherwise in the order given."""
    return sorted(results, key=lambda result: (_OUTCOMES.index(result.outcome), -result.weight))


_AS_WRITTEN: Final = "runs it as it is written"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Makes one check's verdicts."""

    name: str  # the check
    field: str  # path of the field that it is about, unless a verdict names another
    about_sizes: bool = False  # whether it is about what memory and disk a pod needs

    def passed(self, message: str, *, reason: str = "Passed", field: str = "") -> CheckResult:
        """Nothing to do; the message says what was found."""
        return self._result(Outcome.PASS, reason, message, field)

    def warn(
        self, reason: str, message: str, *, by_itself: str = _AS_WRITTEN, field: str = "", weight: int = 0
    ) -> CheckResult:
        """It will run, but not as a reader may expect.

        Args:
            reason: CamelCase.
            message: What is found, and what its reader can do.
            by_itself: What becomes of it if that is nothing, after "otherwise kvtier".
            field: Path of the field that it is about, in place of the check's.
            weight: As of a `CheckResult`.
        """
        return self._result(Outcome.WARN, reason, f"{message}; otherwise kvtier {by_itself}", field, weight)

    def warn_each(
        self, reason: str, faults: Sequence[tuple[str, str]], *, by_itself: str = _AS_WRITTEN, weight: int = 0
    ) -> CheckResult:
        """The same for several things at once.

        Args:
            reason: As for one.
            faults: Field and message of each; at least one.
            by_itself: As for one, of all of them.
            weight: As for one.
        """
        field, message = _together(faults)
        return self.warn(reason, message, by_itself=by_itself, field=field, weight=weight)

    def reject(self, reason: str, message: str, *, field: str = "", weight: int = 0) -> CheckResult:
        """It cannot run."""
        return self._result(Outcome.REJECT, reason, message, field, weight)

    def reject_each(self, reason: str, faults: Sequence[tuple[str, str]]) -> CheckResult:
        """The same for several things at once, so that nobody mends one to be told the next.

        Args:
            reason: As for one.
            faults: Field and message of each; at least one.
        """
        field, message = _together(faults)
        return self.reject(reason, message, field=field)

    def _result(
        self, outcome: Outcome, reason: str, message: str, field: str, weight: int = 0
    ) -> CheckResult:
        return CheckResult(self.name, outcome, reason, message, field or self.field, self.about_sizes, weight)


def _together(faults: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """The first one's field, and all messages, those of others behind their fields."""
    (field, first), *others = faults
    return field, "; ".join((first, *(f"{place}: {text}" for place, text in others)))
