"""Condition Ready after a failed reconciliation: the other conditions are those of an earlier one."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_common.errors import KvtierError
from kvtier_operator.reconcile.facts.condition import (
    UntimedCondition,
    unknown_condition,
    with_transition_time,
)
from kvtier_operator.reconcile.status.conditions import ready

REASON: Final = "RoundFailed"


def round_failed(error: Exception) -> UntimedCondition:
    """Condition Ready with the error that stopped the reconciliation."""
    what = (
        f"{error}" if isinstance(error, KvtierError) else f"a bug in kvtier, {type(error).__name__}: {error}"
    )
    rest = "what runs goes on, the other conditions may be out of date; it is tried again"
    return unknown_condition(ready.TYPE, REASON, f"the operator did not get to the end: {what}; {rest}")


def with_ready(
    status: Mapping[str, Any], condition: UntimedCondition, generation: int, now: str
) -> dict[str, Any]:
    """A status with another condition Ready; an equal status where Ready says so already.

    Args:
        status: The status so far.
        condition: Condition Ready as it is to be.
        generation: Generation of the resource.
        now: The time, RFC 3339 in UTC.
    """
    before = status.get("conditions", ())
    others = [each for each in before if each["type"] != condition.type]
    return {**status, "conditions": [*others, with_transition_time(condition, before, generation, now)]}
