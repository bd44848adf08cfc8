"""One condition before it has a time."""

from dataclasses import dataclass

from kvtier_operator.api.status import ConditionStatus

MAX_MESSAGE_CHARACTERS = 4096
"""Far below the 32,768 that the API takes: a person reads it, and every change of it is a write."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A condition's content.

    Attributes:
        type: Accepted, BudgetFits, NodesFit, EnginesReady, RouterReady or Ready.
        status: True, False or Unknown.
        reason: CamelCase.
        message: What a person needs to know, with numbers.
    """

    type: str
    status: ConditionStatus
    reason: str
    message: str

    @property
    def true(self) -> bool:
        """Whether it holds."""
        return self.status is ConditionStatus.TRUE


def holds(type_: str, reason: str, message: str) -> Verdict:
    """A condition that is True."""
    return Verdict(type_, ConditionStatus.TRUE, reason, _short(message))


def fails(type_: str, reason: str, message: str) -> Verdict:
    """A condition that is False."""
    return Verdict(type_, ConditionStatus.FALSE, reason, _short(message))


def unknown(type_: str, reason: str, message: str) -> Verdict:
    """A condition of which nothing can be said."""
    return Verdict(type_, ConditionStatus.UNKNOWN, reason, _short(message))


def _short(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE_CHARACTERS else f"{message[:MAX_MESSAGE_CHARACTERS]} ..."
