"""AutoscalerReady: whether something scales the engines, where the resource asks for it."""

import re
from collections.abc import Sequence
from typing import Final

from kvtier_operator.planning.report.scaling import Scaling
from kvtier_operator.reconcile.apply.failure import ApplyFailure
from kvtier_operator.reconcile.facts.autoscaler import AutoscalerFacts
from kvtier_operator.reconcile.facts.condition import (
    UntimedCondition,
    false_condition,
    true_condition,
    unknown_condition,
)

TYPE: Final = "AutoscalerReady"
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,126}[A-Za-z0-9_])?")
"""What the API takes for a reason, and no longer than KEDA's and Kubernetes' are."""


def autoscaler_ready(
    scaling: Scaling, facts: AutoscalerFacts | None, failures: Sequence[ApplyFailure]
) -> UntimedCondition:
    """The condition by the autoscaler's own; engines serve without it, so Ready does not depend on it.

    Args:
        scaling: What is wanted.
        facts: What the live autoscaler says; None where there is none yet.
        failures: Autoscalers that could not be applied.
    """
    name = f"{scaling.scaler} {scaling.name}"
    if failures:
        return false_condition(TYPE, failures[0].reason, "; ".join(each.message for each in failures))
    if facts is None:
        return false_condition(TYPE, "NotCreated", f"{name} is not there yet")
    if facts.paused:
        wish = "an annotation autoscaling.keda.sh/paused, -replicas, -scale-in or -scale-out"
        message = f"{name} has {wish}: remove it, and it keeps {scaling.goal}"
        return false_condition(TYPE, "Paused", message)
    if facts.scales:
        return true_condition(TYPE, "Scaling", f"{name} keeps {scaling.goal}")
    if facts.scales is None:
        return unknown_condition(TYPE, "NotReported", f"{name} has not said yet that it keeps {scaling.goal}")
    reason = facts.reason if _REASON.fullmatch(facts.reason) else "NotScaling"
    said = facts.message or "it does not say why"
    stays = "so the engines stay as many as they are"
    message = f"{name} does not scale, {stays}: {said}; it needs {scaling.needs}"
    return false_condition(TYPE, reason, message)
