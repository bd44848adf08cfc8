"""The verdict of one check of the doctor."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Severity(StrEnum):
    """How bad a finding is."""

    PASS = "Pass"  # noqa: S105 - not a password
    WARN = "Warn"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the engine is about to start.

    Attributes:
        name: For a reader, such as `node gpu-3` or `this machine`.
        in_pod: Whether it is a pod, whose limits come from its containers' resources.
    """

    name: str
    in_pod: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """One check's verdict.

    Attributes:
        check: The check.
        severity: Pass, Warn or Fail.
        message: One line: what, needed, found and, unless it passes, what to do.
    """

    check: str
    severity: Severity
    message: str

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
