"""What was published for pods of others and taken back: since when, why, and when it is tried again.

It is kept in `status.attach.withdrawn`, so that an operator that starts anew goes on with it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kvtier_operator.planning.cluster.growth import Refusal
from kvtier_operator.planning.units import many
from kvtier_operator.reconcile.facts.selected_pods import SelectedPod

_PATIENCE_S: Final = 300.0
"""That a pod has to find a node, or its payload to come: nodes and registries are away for minutes."""
_FIRST_RETRY_S: Final = 600.0
_LAST_RETRY_S: Final = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Why the plan was taken back last."""

    reason: str  # CamelCase, as in the condition
    message: str  # what holds the pod up
    pod: str  # the first that did not start
    times: int  # in a row
    retry_at: str  # when it is published again, RFC 3339 in UTC

    @property
    def status(self) -> dict[str, Any]:
        """As `status.attach.withdrawn` has it."""
        return {
            "reason": self.reason,
            "message": self.message,
            "pod": self.pod,
            "times": self.times,
            "retryAt": self.retry_at,
        }

    def refusal(self, now: str) -> Refusal | None:
        """Why nothing is published; None where it is tried again."""
        if self.wait_s(now) <= 0:
            return None
        return Refusal(
            self.reason,
            f"{self.message}; those that are made from now on are left as they are: delete it; the tier is "
            f"tried again at {self.retry_at}, or with another spec",
        )

    def wait_s(self, now: str) -> float:
        """Until it is tried again."""
        return _seconds_between(now, self.retry_at)


def withdrawal_from_status(attach: Mapping[str, Any]) -> Withdrawal | None:
    """What `status.attach` says of it."""
    record = attach.get("withdrawn")
    if not record:
        return None
    return Withdrawal(record["reason"], record["message"], record["pod"], record["times"], record["retryAt"])


def next_withdrawal(pods: Sequence[SelectedPod], before: Withdrawal | None, now: str) -> Withdrawal | None:
    """What is taken back, now or since an earlier look; None where all is well, or well again.

    Args:
        pods: Those that were given what is published, or was last.
        before: The last one for the same spec, over or not.
        now: RFC 3339 in UTC.
    """
    if before is not None and any(_proves_well(pod, before) for pod in pods):
        before = None
    if before is not None and before.wait_s(now) > 0:
        return before
    return _withdrawn(pods, before.times + 1 if before else 1, now) or before


def patience_s(pod: SelectedPod, now: str) -> float:
    """How long a pod that does not start for the tier's sake is waited for yet; infinite for others."""
    since = [
        *([pod.unschedulable_since] if pod.unschedulable_since else []),
        *([pod.bound_at or pod.created_at] if pod.payload else []),
    ]
    return min((_PATIENCE_S - _seconds_between(at, now) for at in since), default=math.inf)


def _proves_well(pod: SelectedPod, before: Withdrawal) -> bool:
    """Whether an engine started with the tier: in the very pod that did not, or in one made since."""
    return bool(pod.engine_start and not pod.payload) and (
        pod.name == before.pod or pod.created_at >= before.retry_at
    )


def _withdrawn(pods: Sequence[SelectedPod], times: int, now: str) -> Withdrawal | None:
    waiting = [pod for pod in pods if patience_s(pod, now) <= 0]
    if not waiting:
        return None
    first = waiting[0]
    others = f" (and {many(len(waiting) - 1, 'pod')} more)" if len(waiting) > 1 else ""
    reason, why = "Unschedulable", f"no node takes it: {first.unschedulable}"
    if first.payload:
        reason, why = "PayloadNotPulled", f"its payload does not come: {first.payload}"
    pause_s = min(_FIRST_RETRY_S * 2 ** (times - 1), _LAST_RETRY_S)
    return Withdrawal(
        reason=reason,
        message=f"pod {first.name}{others} was given the tier, and {why}",
        pod=first.name,
        times=times,
        retry_at=f"{datetime.fromisoformat(now) + timedelta(seconds=pause_s):%Y-%m-%dT%H:%M:%SZ}",
    )


def _seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
