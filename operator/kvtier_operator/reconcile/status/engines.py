"""EnginesReady and AutoscalerReady: whether engines are ready, and whether something scales them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvtier_common.tier import Tier
from kvtier_operator.planning.scaling import Scaling
from kvtier_operator.planning.tiers import traits_of_tier
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.cache.pods import NotReadyPod
from kvtier_operator.reconcile.facts.cached_plan import (
    UntimedCondition,
    false_condition,
    true_condition,
    unknown_condition,
)
from kvtier_operator.reconcile.facts.objects import AutoscalerFacts, DeploymentFacts
from kvtier_operator.reconcile.status.rollout import blocking_reason, not_created, replica_counts

ENGINES_READY: Final = "EnginesReady"
_NO_IMAGE_VOLUME: Final = (
    "the API server left the image volume of spec.model.source out of the pods: Kubernetes mounts images by "
    "default from 1.35, and before with its feature gate ImageVolume; turn it on, or write pvc://"
)
AUTOSCALER_READY: Final = "AutoscalerReady"
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,126}[A-Za-z0-9_])?")
"""What the API takes for a reason, and no longer than KEDA's and Kubernetes' are."""


def tiers_in_use(tiers: Mapping[str, Any]) -> str:
    """What is worth knowing of `status.tiers`; empty where no engine has reported yet."""
    return "; ".join(
        filter(None, (traits_of_tier(tier).in_use(tiers.get(tier.label) or {}) for tier in Tier))
    )


def engines_ready(
    engine: DeploymentFacts | None,
    not_ready: Sequence[NotReadyPod],
    failures: Sequence[ApplyFailure],
    startup_s: int = 0,
    tiers: str = "",
) -> UntimedCondition:
    """The condition by the Deployment's status and the pods that are not ready."""
    if failures:
        return false_condition(
            ENGINES_READY, failures[0].reason, "; ".join(each.message for each in failures)
        )
    if engine is None:
        return not_created(ENGINES_READY, "the engines'")
    count = replica_counts(engine, "engine pods")
    if engine.complete:
        reason = "AllReady" if engine.desired_replicas else "ScaledToZero"
        return true_condition(
            ENGINES_READY, reason, f"{count}; {tiers}" if engine.desired_replicas and tiers else count
        )
    if engine.lacks_model_volume:
        return false_condition(ENGINES_READY, "ImageVolumesOff", f"{count}; {_NO_IMAGE_VOLUME}")
    reason, message = blocking_reason(engine, not_ready)
    if not message and startup_s:
        message = f"one has {startup_s} s to start"
    return false_condition(ENGINES_READY, reason, f"{count}; {message}" if message else count)


def autoscaler_ready(
    scaling: Scaling, facts: AutoscalerFacts | None, failures: Sequence[ApplyFailure]
) -> UntimedCondition:
    """The condition by the autoscaler's own; engines serve without it, so Ready does not depend on it."""
    name = f"{scaling.scaler} {scaling.name}"
    if failures:
        return false_condition(
            AUTOSCALER_READY, failures[0].reason, "; ".join(each.message for each in failures)
        )
    if facts is None:
        return false_condition(AUTOSCALER_READY, "NotCreated", f"{name} is not there yet")
    if facts.paused:
        wish = "an annotation autoscaling.keda.sh/paused, -replicas, -scale-in or -scale-out"
        message = f"{name} has {wish}: remove it, and it keeps {scaling.goal}"
        return false_condition(AUTOSCALER_READY, "Paused", message)
    if facts.scales:
        return true_condition(AUTOSCALER_READY, "Scaling", f"{name} keeps {scaling.goal}")
    if facts.scales is None:
        return unknown_condition(
            AUTOSCALER_READY, "NotReported", f"{name} has not said yet that it keeps {scaling.goal}"
        )
    reason = facts.reason if _REASON.fullmatch(facts.reason) else "NotScaling"
    why = facts.message or "it does not say why"
    stays = "so the engines stay as many as they are"
    message = f"{name} does not scale, {stays}: {why}; it needs {scaling.needs}"
    return false_condition(AUTOSCALER_READY, reason, message)
