"""A plan as it is kept between reconciliations: desired objects without bodies, its part of the status."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import orjson

from kvtier_common.one_line import one_line
from kvtier_operator.api.resource import ConditionStatus
from kvtier_operator.planning.base.names import COMPONENT_LABEL, Component
from kvtier_operator.planning.observed import NOTHING_FOUND, EngineFindings, EngineTokens
from kvtier_operator.planning.pod_template.template import ENGINE, ROUTER
from kvtier_operator.planning.report.scaling import Scaling
from kvtier_operator.reconcile.api_server import BY_NAME, KVCACHETIER, Kind, Ref

MAX_MESSAGE_CHARACTERS: Final = 4096
"""Far below the 32,768 that the API takes: a person reads it, and every change of it is a write."""
_MAX_JOINED_CHARACTERS: Final = 8000
"""Of a message that quotes other conditions; one too long for the API would have the whole status refused."""
FIELD_MANAGER: Final = "kvtier"
APPLIED_HASH: Final = "kvtier.dev/applied-hash"
"""Annotation with the digest of what was applied: only it shows that a field is no longer desired."""
_TEMPLATES: Final = {Component.ENGINE.value: ENGINE, Component.PICKER.value: ROUTER}
"""Path of the template of each component's pods."""
_NOTHING: Final = EngineTokens()


@dataclass(frozen=True, slots=True)
class UntimedCondition:
    """A condition without `lastTransitionTime`, which depends on the status before."""

    type: str  # Accepted, BudgetFits, NodesFit, EnginesReady, RouterReady, AutoscalerReady or Ready
    status: ConditionStatus
    reason: str
    message: str  # what a person needs to know, with numbers

    @property
    def is_true(self) -> bool:
        """Whether the condition holds."""
        return self.status is ConditionStatus.TRUE


def _condition(status: ConditionStatus, type_: str, reason: str, message: str) -> UntimedCondition:
    return UntimedCondition(type_, status, reason, one_line(message, MAX_MESSAGE_CHARACTERS))


true_condition: Final = partial(_condition, ConditionStatus.TRUE)
false_condition: Final = partial(_condition, ConditionStatus.FALSE)
unknown_condition: Final = partial(_condition, ConditionStatus.UNKNOWN)
"""One that holds, one that does not, and one of which nothing can be said yet."""


def with_transition_time(
    condition: UntimedCondition, before: Sequence[Mapping[str, Any]], generation: int, now: str
) -> dict[str, Any]:
    """The condition as the status has it; its transition time moves only with its status or reason."""
    known = next((each for each in before if each["type"] == condition.type), None)
    same = known and (known["status"], known["reason"]) == (condition.status.value, condition.reason)
    return {
        "type": condition.type,
        "status": condition.status.value,
        "observedGeneration": generation,
        "lastTransitionTime": known["lastTransitionTime"] if known and same else now,
        "reason": condition.reason,
        "message": one_line(condition.message, _MAX_JOINED_CHARACTERS),
    }


@dataclass(frozen=True, slots=True)
class DesiredObject:
    """One object that a plan asks for."""

    ref: Ref
    digest: str  # SHA-256 of the object as the planner built it, 16 hexadecimal digits
    body: Mapping[str, Any] | None = None  # the object; None where only ref and digest are kept
    # path of the field whose pod template is a part of it, which only the API server can check; empty where
    # there is none
    template: str = ""

    @property
    def kind(self) -> Kind:
        """The kind of the object."""
        return BY_NAME[self.ref.kind]

    @property
    def leaves_replicas(self) -> bool:
        """Whether it is a Deployment whose number of pods is somebody else's."""
        return self.ref.kind == "Deployment" and "replicas" not in (self.body or {}).get("spec", {})

    def with_uid(self, uid: str) -> "DesiredObject":
        """The same for the live object with this uid: one that has since taken its name is left alone."""
        body = self.body or {}
        return replace(self, body={**body, "metadata": {**body["metadata"], "uid": uid}})

    def without_uid(self) -> "DesiredObject":
        """The same for a new object in place of a deleted one."""
        body = self.body or {}
        metadata = {key: value for key, value in body["metadata"].items() if key != "uid"}
        return replace(self, body={**body, "metadata": metadata})

    def without_body(self) -> "DesiredObject":
        """The same without its body: small enough to keep for thousands of resources."""
        return replace(self, body=None)


def desired_objects(
    objects: Iterable[Mapping[str, Any]], *, name: str, uid: str, templates: Collection[str] = ()
) -> tuple[DesiredObject, ...]:
    """Makes a resource the owner of its objects."""
    owner = {
        "apiVersion": KVCACHETIER.api_version,
        "kind": KVCACHETIER.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        # the resource can be deleted although one of its objects is slow to
        "blockOwnerDeletion": False,
    }
    return tuple(_desired_object(each, owner, templates) for each in objects)


def _desired_object(
    document: Mapping[str, Any], owner: Mapping[str, Any], templates: Collection[str]
) -> DesiredObject:
    text = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(text).hexdigest()[:16]
    annotations = {**document["metadata"].get("annotations", {}), APPLIED_HASH: digest}
    metadata = {**document["metadata"], "annotations": annotations, "ownerReferences": [dict(owner)]}
    component = metadata["labels"].get(COMPONENT_LABEL, "")
    template = _TEMPLATES.get(component, "") if document["kind"] == "Deployment" else ""
    ref = Ref(document["kind"], metadata.get("namespace", ""), metadata["name"])
    body = {**document, "metadata": metadata}
    return DesiredObject(ref, digest, body, template if template in templates else "")


@dataclass(frozen=True, slots=True)
class CachedPlan:
    """The plan of one generation of a resource, without the bodies of its objects."""

    generation: int
    rejected: bool  # whether the spec is rejected, so that nothing is applied
    # the desired objects without their bodies; none where the spec is rejected
    desired: tuple[DesiredObject, ...]
    accepted: UntimedCondition
    budget_fits: UntimedCondition
    nodes_fit: UntimedCondition
    nodes_version: int  # version of the node cache that `nodes_fit` was computed from
    storage_version: int  # version of the storage classes that `budget_fits` was computed from
    engine_hash: str  # hash of the part of the spec that engines are started with
    # sizes of its tiers that a running engine reported; None where none had
    engine_tokens: EngineTokens | None = None
    engine_findings: EngineFindings = NOTHING_FOUND  # what else it reported of them
    most_tokens: EngineTokens = _NOTHING  # the largest sizes that an engine's report is believed
    most_pinned_bytes: int = 0  # the most locked memory that an engine's report is believed
    engine_port: int = 0
    tiers: Mapping[str, Any] = field(default_factory=dict)
    router: Mapping[str, Any] = field(default_factory=dict)
    selector: str = ""
    startup_s: int = 0  # seconds an engine has to start
    scaling: Scaling | None = None  # what scales the engines, and by what; None where the resource does
    serves_scaled_objects: bool | None = None  # whether the cluster had KEDA when it was planned
