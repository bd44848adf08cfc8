"""EnginesReady: whether the engine pods are ready, and if not, why."""

from collections.abc import Sequence
from typing import Final

from kvtier_operator.reconcile.apply.failure import ApplyFailure
from kvtier_operator.reconcile.facts.condition import UntimedCondition, false_condition, true_condition
from kvtier_operator.reconcile.facts.deployment import DeploymentFacts
from kvtier_operator.reconcile.facts.pod import NotReadyPod
from kvtier_operator.reconcile.status.not_created import not_created
from kvtier_operator.reconcile.status.rollout import blocking_reason, replica_counts

TYPE: Final = "EnginesReady"
_NO_IMAGE_VOLUME: Final = (
    "the API server left the image volume of spec.model.source out of the pods: Kubernetes mounts images by "
    "default from 1.35, and before with its feature gate ImageVolume; turn it on, or write pvc://"
)


def engines_ready(
    engine: DeploymentFacts | None,
    not_ready: Sequence[NotReadyPod],
    failures: Sequence[ApplyFailure],
    startup_s: int = 0,
    tiers: str = "",
) -> UntimedCondition:
    """The condition by the Deployment's status and the pods that are not ready.

    Args:
        engine: The engines' Deployment; None where there is none yet.
        not_ready: Engine pods that are not ready, the most telling first.
        failures: Objects of the engines that could not be applied.
        startup_s: Seconds an engine has to start.
        tiers: What an engine reported of its tiers, in words.
    """
    if failures:
        return false_condition(TYPE, failures[0].reason, "; ".join(each.message for each in failures))
    if engine is None:
        return not_created(TYPE, "the engines'")
    count = replica_counts(engine, "engine pods")
    if engine.complete:
        reason = "AllReady" if engine.desired_replicas else "ScaledToZero"
        return true_condition(
            TYPE, reason, f"{count}; {tiers}" if engine.desired_replicas and tiers else count
        )
    if engine.lacks_model_volume:
        return false_condition(TYPE, "ImageVolumesOff", f"{count}; {_NO_IMAGE_VOLUME}")
    reason, message = blocking_reason(engine, not_ready)
    if not message and startup_s:
        message = f"one has {startup_s} s to start"
    return false_condition(TYPE, reason, f"{count}; {message}" if message else count)
