"""EnginesReady and AutoscalerReady, and what keeps a rollout from being complete."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kvtier_common.tier import Tier
from kvtier_operator.planning.scaling import Scaling
from kvtier_operator.planning.tiers import traits_of_tier
from kvtier_operator.planning.units import many
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.cache.pods import NotReadyPod
from kvtier_operator.reconcile.facts.cached_plan import (
    UntimedCondition,
    false_condition,
    true_condition,
    unknown_condition,
)
from kvtier_operator.reconcile.facts.objects import AutoscalerFacts, DeploymentFacts

NOT_CREATED: Final = "NotCreated"
_PULL: Final = "correct the image's name, or have its Secret in this namespace and spec.imagePullSecrets"
_ADVICE: Final[Mapping[str, str]] = {
    "DoctorFailed": "the pod checked itself before vLLM started: correct the node or the spec as it says",
    "ImagePullBackOff": _PULL,
    "ErrImagePull": _PULL,
    "InvalidImageName": "correct the image's name",
    "CreateContainerConfigError": "make the Secret or ConfigMap that it names",
    "CreateContainerError": "look at the node: its container runtime refuses the container",
    "Evicted": "the node ran short of what it says: ask for as much in the spec, or give the node more",
    "OOMKilled": "raise the container's memory limit, or lower spec.tiers.cpu.capacity",
    "ContainerCrashed": "read its log with kubectl logs --previous",
    "FailedCreate": "the namespace's LimitRanges, quotas, Pod Security or an admission webhook refuse it: "
    "correct the spec as it says, or ask the namespace's owner",
    "Unschedulable": "if NodesFit is True, other pods hold the room: free it or add nodes; make a claim that "
    "is not found",
    "QuotaExceeded": "raise the namespace's ResourceQuota, or ask for less",
}


def not_created_condition(type_: str, what: str) -> UntimedCondition:
    """A condition that is False, for want of a Deployment; `with_cause` adds why."""
    return false_condition(type_, NOT_CREATED, f"{what} Deployment is not there")


def with_cause(
    condition: UntimedCondition, held_up_by: Sequence[ApplyFailure], *, rejected: bool
) -> UntimedCondition:
    """Adds why a Deployment is not created: nothing is, before objects of both components can be."""
    if condition.reason != NOT_CREATED:
        return condition
    if rejected:
        return replace(condition, message=f"{condition.message}, and is not made while Accepted is False")
    if held_up_by:
        causes = "; ".join(condition.message for condition in held_up_by)
        return false_condition(
            condition.type,
            held_up_by[0].reason,
            f"{condition.message}, and is not made before all can be: {causes}",
        )
    return replace(condition, message=f"{condition.message} yet")


def replica_counts(facts: DeploymentFacts, what: str) -> str:
    """How many pods are ready, of how many."""
    rest = (
        ""
        if facts.replicas == facts.updated_replicas == facts.desired_replicas
        else f", {facts.replicas} exist"
    )
    old = (
        f" ({facts.replicas - facts.updated_replicas} of an older spec)"
        if facts.replicas > facts.updated_replicas
        else ""
    )
    return f"{facts.ready_replicas} of {facts.desired_replicas} {what} ready{rest}{old}"


def blocking_reason(facts: DeploymentFacts, not_ready: Sequence[NotReadyPod]) -> tuple[str, str]:
    """Reason and message of the first thing that blocks the rollout; Progressing while pods start."""
    if facts.failed_reason:
        quota = "exceeded quota" in facts.failed_message
        reason = "QuotaExceeded" if quota else facts.failed_reason
        return reason, _with_advice(reason, f"a pod cannot be made: {facts.failed_message}")
    with_reason = [pod for pod in not_ready if pod.reason]
    terminating = sum(pod.terminating for pod in not_ready)
    if with_reason and with_reason[0].reason == "Unschedulable" and terminating:
        return (
            "Progressing",
            f"pod {with_reason[0].name} waits for the room of {many(terminating, 'pod')} still draining",
        )
    if with_reason:
        return with_reason[0].reason, _with_advice(with_reason[0].reason, _tell(with_reason))
    if facts.stalled:
        return "ProgressDeadlineExceeded", "the rollout ran out of time: read the pods' logs"
    return (
        "Progressing",
        "a change is being rolled out" if facts.ready_replicas >= facts.desired_replicas else "",
    )


def _tell(not_ready: Sequence[NotReadyPod]) -> str:
    first = not_ready[0]
    where = f" on node {first.node}" if first.node else ""
    alike = sum(pod.reason == first.reason for pod in not_ready) - 1
    others = f" (and {alike} more like it)" if alike else ""
    return f"pod {first.name}{where}{others}: {first.reason}: {first.message or 'nothing more was said'}"


def _with_advice(reason: str, message: str) -> str:
    advice = _ADVICE.get(reason, "")
    return f"{message}; {advice}" if advice else message


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


def engines_ready_condition(
    engine: DeploymentFacts | None,
    not_ready: Sequence[NotReadyPod],
    failures: Sequence[ApplyFailure],
    startup_s: int = 0,
    tiers: str = "",
) -> UntimedCondition:
    """The condition by the Deployment's status and the pods that are not ready."""
    if failures:
        return false_condition(
            ENGINES_READY, failures[0].reason, "; ".join(failure.message for failure in failures)
        )
    if engine is None:
        return not_created_condition(ENGINES_READY, "the engines'")
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


def autoscaler_ready_condition(
    scaling: Scaling, facts: AutoscalerFacts | None, failures: Sequence[ApplyFailure]
) -> UntimedCondition:
    """The condition by the autoscaler's own; engines serve without it, so Ready does not depend on it."""
    name = f"{scaling.scaler} {scaling.name}"
    if failures:
        return false_condition(
            AUTOSCALER_READY, failures[0].reason, "; ".join(failure.message for failure in failures)
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
