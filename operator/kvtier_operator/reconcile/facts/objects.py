"""What the status of a Deployment, an autoscaler, a route or a pool says: pure readers."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from kvtier_common.one_line import one_line
from kvtier_operator.planning.router.route_order import Listeners, listeners_of
from kvtier_operator.planning.weights.pod_weights import MODEL_DIR

_TELLING: Final[Mapping[str, tuple[str, ...]]] = {
    "HorizontalPodAutoscaler": ("AbleToScale", "ScalingActive"),
    "ScaledObject": ("Ready",),
}
"""Conditions that have to be True (k8s.io/api, autoscaling/v2; KEDA 2, keda.sh/v1alpha1)."""
_PAUSED: Final = "Paused"
"""Condition of a ScaledObject that an annotation stops (`autoscaling.keda.sh/paused`); it is Ready then."""
_MOST_CHARACTERS: Final = 1024
_ACCEPTED: Final = "Accepted"
_OF_ROUTES: Final[Mapping[str, str]] = {
    _ACCEPTED: "True",
    "ResolvedRefs": "True",
    "PartiallyInvalid": "False",
    "Programmed": "True",
    "Reconciled": "True",
}
"""The status that each condition has to have where it is reported. The first three are Gateway API's (v1,
apis/v1/shared_types.go), `Programmed` is Kong's, `Reconciled` GKE's (inference extension, issue 806). Of
others nobody knows which status is the good one."""
_OF_POOLS: Final[Mapping[str, str]] = {_ACCEPTED: "True", "ResolvedRefs": "True"}
"""inference extension v1, api/v1/inferencepool_types.go. `Exported` is False where nobody asked for it."""


@dataclass(frozen=True, slots=True)
class DeploymentFacts:
    """A Deployment at one moment."""

    desired_replicas: int  # pods that the spec asks for
    replicas: int  # pods that exist, old ones of a rollout included
    updated_replicas: int  # pods of the current template
    ready_replicas: int  # pods that are ready, old ones included
    observed_latest: bool  # whether the Deployment's controller has seen the latest spec
    failed_reason: str = ""  # reason why pods cannot be made, such as FailedCreate; empty where they can
    failed_message: str = ""  # what the server said of it, such as an exceeded quota
    stalled: bool = False  # whether the rollout ran out of time (progressDeadlineSeconds)
    lacks_model_volume: bool = False  # whether its pods have no volume where their engine looks for the model

    @property
    def complete(self) -> bool:
        """Whether all desired pods exist and are ready, of the latest template, and no others exist."""
        return self._is_rolled_out and self.ready_replicas >= self.desired_replicas

    @property
    def has_leader(self) -> bool:
        """The same for pods that elect a leader: only the leader is ever ready."""
        return self._is_rolled_out and self.ready_replicas > 0

    @property
    def _is_rolled_out(self) -> bool:
        return self.observed_latest and self.replicas == self.updated_replicas == self.desired_replicas


def deployment_facts(document: Mapping[str, Any]) -> DeploymentFacts:
    """Reads an apps/v1 Deployment."""
    status = document.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions", ())}
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
        argument.startswith(MODEL_DIR)
        for container in containers
        for argument in container.get("args", ())[:1]
    )
    mounts = {
        mount.get("mountPath") for container in containers for mount in container.get("volumeMounts", ())
    }
    return reads and MODEL_DIR not in mounts


@dataclass(frozen=True, slots=True)
class AutoscalerFacts:
    """What an autoscaler's status says."""

    scales: bool | None = None  # whether it knows its metric and may scale; None while it has not said so
    reason: str = ""  # its own reason where it does not
    message: str = ""  # its own words where it does not
    paused: bool = False  # whether somebody told it to rest


def autoscaler_facts(kind: str, document: Mapping[str, Any]) -> AutoscalerFacts | None:
    """Reads a HorizontalPodAutoscaler or a ScaledObject; None for another kind."""
    telling = _TELLING.get(kind)
    if telling is None:
        return None
    reported = (document.get("status") or {}).get("conditions") or ()
    conditions = {condition.get("type"): condition for condition in reported}
    if kind == "ScaledObject" and conditions.get(_PAUSED, {}).get("status") == "True":
        return AutoscalerFacts(scales=False, paused=True)
    known = [conditions[type_] for type_ in telling if type_ in conditions]
    failing = next((condition for condition in known if condition.get("status") == "False"), None)
    if failing is not None:
        message = one_line(failing.get("message") or "", _MOST_CHARACTERS)
        return AutoscalerFacts(scales=False, reason=failing.get("reason") or "", message=message)
    well = len(known) == len(telling) and all(condition.get("status") == "True" for condition in known)
    return AutoscalerFacts(scales=True if well else None)


class ParentAnswer(IntEnum):
    """Whether a Gateway accepts an object, from the best answer to the worst."""

    ACCEPTED = 0
    UNANSWERED = 1
    """Its controller has not reported anything."""
    PENDING = 2
    """Its controller has reported on an earlier generation only."""
    REJECTED = 3


@dataclass(frozen=True, slots=True)
class ParentFacts:
    """What one parent reports of an object."""

    listeners: Listeners  # the parent
    answer: ParentAnswer = ParentAnswer.UNANSWERED  # whether it accepts the object
    reason: str = ""  # the first reason that it gives where it does not accept it
    message: str = ""  # its own words where it does not accept it
    attached: bool = True  # False where it does not attach the object at all


def route_parents(document: Mapping[str, Any]) -> tuple[ParentFacts, ...]:
    """One for each Gateway that an HTTPRoute names; of several controllers' answers the worst counts."""
    namespace = document["metadata"].get("namespace", "")
    reports = _reports(document, _OF_ROUTES)
    named = (listeners_of(parent, namespace) for parent in document["spec"].get("parentRefs") or ())
    return tuple(
        max(
            (report for report in reports if report.listeners == listeners),
            key=lambda report: report.answer,
            default=ParentFacts(listeners),
        )
        for listeners in named
        if listeners is not None
    )


def pool_parents(document: Mapping[str, Any]) -> tuple[ParentFacts, ...]:
    """One for each Gateway that reports on an InferencePool: not all do (kgateway, issue 13456)."""
    return _reports(document, _OF_POOLS)


def _reports(document: Mapping[str, Any], must: Mapping[str, str]) -> tuple[ParentFacts, ...]:
    namespace = document["metadata"].get("namespace", "")
    generation = document["metadata"].get("generation", 1)
    parents = (document.get("status") or {}).get("parents") or ()
    entries = ((listeners_of(parent.get("parentRef") or {}, namespace), parent) for parent in parents)
    return tuple(
        _judge(listeners, entry, must, generation) for listeners, entry in entries if listeners is not None
    )


def _judge(
    listeners: Listeners, entry: Mapping[str, Any], must: Mapping[str, str], generation: int
) -> ParentFacts:
    conditions = {
        condition["type"]: condition
        for condition in entry.get("conditions") or ()
        if condition["type"] in must
    }
    current = {
        name: condition for name, condition in conditions.items() if not _is_old(condition, generation)
    }
    wrong = [
        condition for name, condition in current.items() if condition["status"] not in (must[name], "Unknown")
    ]
    if wrong:
        attached = current.get(_ACCEPTED, {}).get("status") != "False"
        return _report(listeners, ParentAnswer.REJECTED, entry, wrong, attached=attached)
    undecided = [condition for condition in current.values() if condition["status"] == "Unknown"]
    if undecided or len(current) < len(conditions) or _ACCEPTED not in current:
        return _report(listeners, ParentAnswer.PENDING, entry, undecided, attached=True)
    return ParentFacts(listeners, ParentAnswer.ACCEPTED)


def _is_old(condition: Mapping[str, Any], generation: int) -> bool:
    """One without `observedGeneration`, which may be left out, is taken for current."""
    return bool(condition.get("observedGeneration", generation) < generation)


def _report(
    listeners: Listeners,
    answer: ParentAnswer,
    entry: Mapping[str, Any],
    conditions: list[Mapping[str, Any]],
    *,
    attached: bool,
) -> ParentFacts:
    lines = "; ".join(
        f"{condition['type']}={condition['status']}, {condition['reason']}: {condition['message']}"
        for condition in conditions
    )
    text = " ".join(lines.split())[:_MOST_CHARACTERS]
    controller = entry.get("controllerName", "")
    return ParentFacts(
        listeners=listeners,
        answer=answer,
        reason=conditions[0]["reason"] if conditions else "",
        message=f"{text} ({controller})" if text and controller else text,
        attached=attached,
    )
