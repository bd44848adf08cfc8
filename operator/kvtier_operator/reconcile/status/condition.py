"""A verdict as a condition of the status."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvtier_operator.reconcile.status.verdict import Verdict

_MOST: Final = 8000
"""Characters of a message, whoever has a part in it: a status that is refused is none."""


def condition_of(
    verdict: Verdict, before: Sequence[Mapping[str, Any]], generation: int, now: str
) -> dict[str, Any]:
    """Its content with a time: that of the condition there is, unless status or reason change.

    Args:
        verdict: What it says.
        before: The conditions there are.
        generation: Generation of the resource that it speaks of.
        now: The time, RFC 3339 in UTC.
    """
    known = next((each for each in before if each["type"] == verdict.type), None)
    same = known and (known["status"], known["reason"]) == (verdict.status.value, verdict.reason)
    return {
        "type": verdict.type,
        "status": verdict.status.value,
        "observedGeneration": generation,
        "lastTransitionTime": known["lastTransitionTime"] if known and same else now,
        "reason": verdict.reason,
        "message": verdict.message if len(verdict.message) <= _MOST else f"{verdict.message[:_MOST]} ...",
    }
