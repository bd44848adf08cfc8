"""What a Deployment's status says, in the few numbers that conditions speak of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvtier_operator.planning.weights.pod_weights import MODEL_DIR


@dataclass(frozen=True, slots=True)
class DeploymentFacts:
    """A Deployment at one moment.

    Attributes:
        desired_replicas: Pods that the spec asks for.
        replicas: Pods that exist, old ones of a rollout included.
        updated_replicas: Pods of the current template.
        ready_replicas: Pods that are ready, old ones included.
        observed_latest: Whether the Deployment's controller has seen the latest spec.
        failed_reason: Reason why pods cannot be made, such as FailedCreate; empty where they can.
        failed_message: What the server said of it, such as an exceeded quota.
        stalled: Whether the rollout ran out of time (progressDeadlineSeconds).
        lacks_model_volume: Whether its pods have no volume where their engine looks for the model.
    """

    desired_replicas: int
    replicas: int
    updated_replicas: int
    ready_replicas: int
    observed_latest: bool
    failed_reason: str = ""
    failed_message: str = ""
    stalled: bool = False
    lacks_model_volume: bool = False

    @property
    def complete(self) -> bool:
        """Whether all desired pods exist and are ready, of the latest template, and no others exist."""
        return (
            self.observed_latest
            and self.replicas == self.updated_replicas == self.desired_replicas
            and self.ready_replicas >= self.desired_replicas
        )

    @property
    def has_leader(self) -> bool:
        """The same for pods that elect a leader: only the leader is ever ready."""
        return (
            self.observed_latest
            and self.replicas == self.updated_replicas == self.desired_replicas
            and self.ready_replicas > 0
        )


def deployment_facts(document: Mapping[str, Any]) -> DeploymentFacts:
    """Reads an apps/v1 Deployment."""
    status = document.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions", ())}
    failure = conditions.get("ReplicaFailure", {})
    failing = failure.get("status") == "True"
    return DeploymentFacts(
        desired_replicas=document["spec"].get("replicas", 1),
        replicas=status.get("replicas", 0),
        updated_replicas=status.get("updatedReplicas", 0),
        ready_replicas=status.get("readyReplicas", 0),
        observed_latest=status.get("observedGeneration", 0) >= document["metadata"].get("generation", 1),
        failed_reason=failure.get("reason", "") if failing else "",
        failed_message=failure.get("message", "") if failing else "",
        stalled=conditions.get("Progressing", {}).get("reason") == "ProgressDeadlineExceeded",
        lacks_model_volume=_lacks_model(document["spec"].get("template", {}).get("spec", {})),
    )


def _lacks_model(pod: Mapping[str, Any]) -> bool:
    """An API server without image volumes takes a pod without the volume that is one."""
    containers = pod.get("containers", ())
    reads = any(
        argument.startswith(MODEL_DIR) for each in containers for argument in each.get("args", ())[:1]
    )
    mounts = {mount.get("mountPath") for each in containers for mount in each.get("volumeMounts", ())}
    return reads and MODEL_DIR not in mounts
