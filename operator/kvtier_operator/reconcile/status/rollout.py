"""How far the rollout of a Deployment is, and what blocks it: the same for engines, pickers and gateways."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from kvtier_operator.planning.units import many
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.cache.pods import NotReadyPod
from kvtier_operator.reconcile.facts.cached_plan import UntimedCondition, false_condition
from kvtier_operator.reconcile.facts.objects import DeploymentFacts

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


def not_created(type_: str, what: str) -> UntimedCondition:
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
        causes = "; ".join(each.message for each in held_up_by)
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
    with_reason = [each for each in not_ready if each.reason]
    terminating = sum(each.terminating for each in not_ready)
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
    alike = sum(each.reason == first.reason for each in not_ready) - 1
    others = f" (and {alike} more like it)" if alike else ""
    return f"pod {first.name}{where}{others}: {first.reason}: {first.message or 'nothing more was said'}"


def _with_advice(reason: str, message: str) -> str:
    advice = _ADVICE.get(reason, "")
    return f"{message}; {advice}" if advice else message
