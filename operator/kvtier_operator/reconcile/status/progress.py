"""Stalled and Reconciling, which Flux, Argo CD and `helm --wait` decide by.

kstatus, sigs.k8s.io/cli-utils/pkg/kstatus: both are there only while they are True. A resource with Stalled
has failed, one with Reconciling is waited for, and one without either is judged by Ready.
"""

from collections.abc import Sequence
from typing import Final

from kvtier_operator.api.resource import RECONCILING, STALLED, ConditionStatus
from kvtier_operator.reconcile.facts.cached_plan import UntimedCondition, true_condition

_ENDED: Final = "ProgressDeadlineExceeded"
"""The reason beside a refused spec that no waiting mends: what a cluster lacks may still be coming."""


def progress_conditions(
    conditions: Sequence[UntimedCondition], *, asked_again: bool
) -> tuple[UntimedCondition, ...]:
    """None where it is ready; else Stalled where somebody has to act, Reconciling where time may do.

    Args:
        conditions: Those that Ready depends on, and Ready, the last.
        asked_again: Whether the operator asks again by itself for what a refused spec lacks.
    """
    ready = conditions[-1]
    if ready.is_true:
        return ()
    for condition in conditions[:-1]:
        refused = condition.type == "Accepted" and not asked_again
        if (refused or condition.reason == _ENDED) and condition.status is ConditionStatus.FALSE:
            return (true_condition(STALLED, condition.reason, f"{condition.type}: {condition.message}"),)
    return (true_condition(RECONCILING, ready.reason, ready.message),)
