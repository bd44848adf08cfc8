"""The desired objects of a plan as they are applied: with their owner and an annotation with their digest."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from kvtier_operator.planning.base.names import COMPONENT_LABEL, Component
from kvtier_operator.planning.pod_template.template import ENGINE, ROUTER
from kvtier_operator.reconcile.api_server.kinds import BY_NAME, KVCACHETIER, Kind, Ref, ref_of

FIELD_MANAGER: Final = "kvtier"
APPLIED_HASH: Final = "kvtier.dev/applied-hash"
"""Annotation with the digest of what was applied: only it shows that a field is no longer desired."""
_TEMPLATES: Final = {Component.ENGINE.value: ENGINE, Component.PICKER.value: ROUTER}
"""Path of the template of each component's pods."""


@dataclass(frozen=True, slots=True)
class DesiredObject:
    """One object that a plan asks for.

    Attributes:
        ref: Kind, namespace and name.
        digest: SHA-256 of the object as the planner built it, 16 hexadecimal digits.
        body: The object; None where only ref and digest are kept.
        template: Path of the field whose pod template is a part of it, which only the API server can check;
            empty where there is none.
    """

    ref: Ref
    digest: str
    body: Mapping[str, Any] | None = None
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
    """Makes a resource the owner of its objects.

    Args:
        objects: What the planner built, in its order.
        name: The resource's name.
        uid: The resource's uid.
        templates: Paths of the pod templates that the resource has.
    """
    owner = {
        "apiVersion": KVCACHETIER.api_version,
        "kind": KVCACHETIER.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        # the resource can be deleted although one of its objects is slow to
        "blockOwnerDeletion": False,
    }
    return tuple(_desired(each, owner, templates) for each in objects)


def _desired(
    document: Mapping[str, Any], owner: Mapping[str, Any], templates: Collection[str]
) -> DesiredObject:
    text = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(text).hexdigest()[:16]
    annotations = {**document["metadata"].get("annotations", {}), APPLIED_HASH: digest}
    metadata = {**document["metadata"], "annotations": annotations, "ownerReferences": [dict(owner)]}
    component = metadata["labels"].get(COMPONENT_LABEL, "")
    template = _TEMPLATES.get(component, "") if document["kind"] == "Deployment" else ""
    return DesiredObject(
        ref_of(document),
        digest,
        {**document, "metadata": metadata},
        template if template in templates else "",
    )
