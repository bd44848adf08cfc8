"""What a status says when a round came to no end: the other conditions are of an earlier one."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.errors import KvtierError
from kvtier_operator.reconcile.status import ready
from kvtier_operator.reconcile.status.verdict import Verdict, unknown

REASON: Final = "RoundFailed"


def round_failed(error: Exception) -> Verdict:
    """Condition Ready, with what stopped the round."""
    what = (
        f"{error}" if isinstance(error, KvtierError) else f"a bug in kvtier, {type(error).__name__}: {error}"
    )
    rest = "what runs goes on, the other conditions may be out of date; it is tried again"
    return unknown(ready.TYPE, REASON, f"the operator did not get to the end: {what}; {rest}")


def with_ready(status: Mapping[str, Any], verdict: Verdict, generation: int, now: str) -> dict[str, Any]:
    """A status in which condition Ready alone is another; the same if it says so already.

    Args:
        status: The status there is.
        verdict: What Ready is to be.
        generation: Of the resource.
        now: The time, RFC 3339 in UTC.
    """
    before = status.get("conditions", ())
    content = {
        "type": verdict.type,
        "status": verdict.status.value,
        "observedGeneration": generation,
        "reason": verdict.reason,
        "message": verdict.message,
    }
    known: Mapping[str, Any] = next((each for each in before if each["type"] == verdict.type), {})
    is_news = any(known.get(key) != content[key] for key in ("status", "reason"))
    others = [each for each in before if each["type"] != verdict.type]
    return {
        **status,
        "conditions": [
            *others,
            content | {"lastTransitionTime": now if is_news else known["lastTransitionTime"]},
        ],
    }
