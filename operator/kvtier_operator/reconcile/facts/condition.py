"""A condition of the status, first as it is computed and then with the time of its last transition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.one_line import one_line
from kvtier_operator.api.status import ConditionStatus

MAX_MESSAGE_CHARACTERS: Final = 4096
"""Far below the 32,768 that the API takes: a person reads it, and every change of it is a write."""
_MAX_JOINED_CHARACTERS: Final = 8000
"""Of a message that quotes other conditions; one too long for the API would have the whole status refused."""


@dataclass(frozen=True, slots=True)
class UntimedCondition:
    """A condition without `lastTransitionTime`, which depends on the status before.

    Attributes:
        type: Accepted, BudgetFits, NodesFit, EnginesReady, RouterReady, AutoscalerReady or Ready.
        status: True, False or Unknown.
        reason: CamelCase.
        message: What a person needs to know, with numbers.
    """

    type: str
    status: ConditionStatus
    reason: str
    message: str

    @property
    def is_true(self) -> bool:
        """Whether the condition holds."""
        return self.status is ConditionStatus.TRUE


def true_condition(type_: str, reason: str, message: str) -> UntimedCondition:
    """A condition that holds."""
    return UntimedCondition(type_, ConditionStatus.TRUE, reason, _cut(message, MAX_MESSAGE_CHARACTERS))


def false_condition(type_: str, reason: str, message: str) -> UntimedCondition:
    """A condition that does not hold."""
    return UntimedCondition(type_, ConditionStatus.FALSE, reason, _cut(message, MAX_MESSAGE_CHARACTERS))


def unknown_condition(type_: str, reason: str, message: str) -> UntimedCondition:
    """A condition of which nothing can be said yet."""
    return UntimedCondition(type_, ConditionStatus.UNKNOWN, reason, _cut(message, MAX_MESSAGE_CHARACTERS))


def with_transition_time(
    condition: UntimedCondition, before: Sequence[Mapping[str, Any]], generation: int, now: str
) -> dict[str, Any]:
    """The condition as the status has it; its transition time moves only with its status or reason.

    Args:
        condition: The condition as computed.
        before: Conditions of the status so far.
        generation: Generation of the resource that it speaks of.
        now: The time, RFC 3339 in UTC.
    """
    known = next((each for each in before if each["type"] == condition.type), None)
    same = known and (known["status"], known["reason"]) == (condition.status.value, condition.reason)
    return {
        "type": condition.type,
        "status": condition.status.value,
        "observedGeneration": generation,
        "lastTransitionTime": known["lastTransitionTime"] if known and same else now,
        "reason": condition.reason,
        "message": _cut(condition.message, _MAX_JOINED_CHARACTERS),
    }


def _cut(message: str, most_characters: int) -> str:
    """On one line: what others wrote into it forges no other and commands no terminal."""
    return one_line(message, most_characters)
