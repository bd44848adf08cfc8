"""What a Deployment's status says, in the few numbers that conditions speak of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvtier_operator.planning.weights.model_source import MODEL_DIR


@dataclass(frozen=True, slots=True)
class DeploymentFacts:
    """A Deployment at one moment.

    Attributes:
        wanted: Pods asked for.
        exist: Pods that exist, old ones of a rollout included.
        updated: Pods of the current template.
        ready: Pods that are ready, old ones included.
        current: Whether the Deployment's controller has seen the latest spec.
        failed_reason: Reason why pods cannot be made, such as FailedCreate; empty where they can.
        failed_message: What the server said of it, such as an exceeded quota.
        stalled: Whether the rollout ran out of time (progressDeadlineSeconds).
        lacks_model: Whether its pods have no volume where their engine looks for the model.
    """

    wanted: int
    exist: int
    updated: int
    ready: int
    current: bool
    failed_reason: str = ""
    failed_message: str = ""
    stalled: bool = False
    lacks_model: bool = False

    @property
    def complete(self) -> bool:
        """All pods wanted are there, of the current template, ready, and no others."""
        return self.current and self.exist == self.updated == self.wanted and self.ready >= self.wanted

    @property
    def led(self) -> bool:
        """The same of pods that elect a leader, which alone is ever ready."""
        return self.current and self.exist == self.updated == self.wanted and self.ready > 0


def deployment_facts(document: Mapping[str, Any]) -> DeploymentFacts:
    """Reads an apps/v1 Deployment."""
    status = document.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions", ())}
    failure = conditions.get("ReplicaFailure", {})
    failing = failure.get("status") == "True"
    return DeploymentFacts(
        wanted=document["spec"].get("replicas", 1),
        exist=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        ready=status.get("readyReplicas", 0),
        current=status.get("observedGeneration", 0) >= document["metadata"].get("generation", 1),
        failed_reason=failure.get("reason", "") if failing else "",
        failed_message=failure.get("message", "") if failing else "",
        stalled=conditions.get("Progressing", {}).get("reason") == "ProgressDeadlineExceeded",
        lacks_model=_lacks_model(document["spec"].get("template", {}).get("spec", {})),
    )


def _lacks_model(pod: Mapping[str, Any]) -> bool:
    """An API server without image volumes takes a pod without the volume that is one."""
    containers = pod.get("containers", ())
    reads = any(
        argument.startswith(MODEL_DIR) for each in containers for argument in each.get("args", ())[:1]
    )
    mounts = {mount.get("mountPath") for each in containers for mount in each.get("volumeMounts", ())}
    return reads and MODEL_DIR not in mounts
