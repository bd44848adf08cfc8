"""Stalled and Reconciling, which Flux, Argo CD and `helm --wait` decide by.

kstatus, sigs.k8s.io/cli-utils/pkg/kstatus: both are there only while they are True. A resource with Stalled
has failed, one with Reconciling is waited for, and one without either is judged by Ready.
"""

from collections.abc import Sequence
from typing import Final

from kvtier_operator.api.resource import RECONCILING, STALLED
from kvtier_operator.reconcile.facts.cached_plan import UntimedCondition, true_condition

_ENDED: Final = "ProgressDeadlineExceeded"
"""The reason beside a refused spec that no waiting mends: what a cluster lacks may still be coming."""


def progress_conditions(conditions: Sequence[UntimedCondition]) -> tuple[UntimedCondition, ...]:
    """None where it is ready; else Stalled where somebody has to act, Reconciling where time may do.

    Args:
        conditions: All others, Ready the last.
    """
    ready = conditions[-1]
    if ready.is_true:
        return ()
    for condition in conditions[:-1]:
        refused = condition.type == "Accepted" or condition.reason == _ENDED
        if refused and not condition.is_true:
            return (true_condition(STALLED, condition.reason, f"{condition.type}: {condition.message}"),)
    return (true_condition(RECONCILING, ready.reason, ready.message),)
