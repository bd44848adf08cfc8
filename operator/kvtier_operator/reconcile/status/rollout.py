"""What engines and picker have in common: a Deployment, its pods, and what keeps them."""

from collections.abc import Mapping, Sequence
from typing import Final

from kvtier_operator.planning.units import many
from kvtier_operator.reconcile.facts.deployment import DeploymentFacts
from kvtier_operator.reconcile.facts.pod import NotReadyPod

_ADVICE: Final[Mapping[str, str]] = {
    "DoctorFailed": "the pod checked itself before vLLM started: correct the node or the spec as it says",
    "ImagePullBackOff": "correct the image's name, or name what pulls it in spec.imagePullSecrets",
    "ErrImagePull": "correct the image's name, or name what pulls it in spec.imagePullSecrets",
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


def counts(facts: DeploymentFacts, what: str) -> str:
    """Numbers of pods; `what` they are, such as `engine pods`."""
    rest = "" if facts.exist == facts.updated == facts.wanted else f", {facts.exist} exist"
    old = f" ({facts.exist - facts.updated} of an older spec)" if facts.exist > facts.updated else ""
    return f"{facts.ready} of {facts.wanted} {what} ready{rest}{old}"


def hindrance(facts: DeploymentFacts, troubles: Sequence[NotReadyPod]) -> tuple[str, str]:
    """Reason and words for the first thing that keeps the pods; Progressing while they come up.

    Args:
        facts: The Deployment, not complete.
        troubles: Its pods that are not ready or on their way out, the most telling first.
    """
    if facts.failed_reason:
        quota = "exceeded quota" in facts.failed_message
        reason = "QuotaExceeded" if quota else facts.failed_reason
        return reason, _advised(reason, f"a pod cannot be made: {facts.failed_message}")
    telling = [each for each in troubles if each.reason]
    leaving = sum(each.leaving for each in troubles)
    if telling and telling[0].reason == "Unschedulable" and leaving:
        return (
            "Progressing",
            f"pod {telling[0].name} waits for the room of {many(leaving, 'pod')} still draining",
        )
    if telling:
        return telling[0].reason, _advised(telling[0].reason, _tell(telling))
    if facts.stalled:
        return "ProgressDeadlineExceeded", "the rollout ran out of time: read the pods' logs"
    return "Progressing", "a change is being rolled out" if facts.ready >= facts.wanted else ""


def _tell(troubles: Sequence[NotReadyPod]) -> str:
    first = troubles[0]
    where = f" on node {first.node}" if first.node else ""
    alike = sum(each.reason == first.reason for each in troubles) - 1
    others = f" (and {alike} more like it)" if alike else ""
    return f"pod {first.name}{where}{others}: {first.reason}: {first.message or 'nothing more was said'}"


def _advised(reason: str, said: str) -> str:
    advice = _ADVICE.get(reason, "")
    return f"{said}; {advice}" if advice else said
