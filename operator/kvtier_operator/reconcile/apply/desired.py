"""The objects of a Plan as they are applied: with their owner, and a hash that tells whether they changed."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kvtier_operator.reconcile.api_server.kinds import BY_NAME, TIER, Kind, Ref, ref_of

APPLIED_HASH: Final = "kvtier.dev/applied-hash"
"""Annotation of a child: hash of what was applied. A field no longer wanted can be seen by it alone."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One object to have.

    Attributes:
        ref: Which.
        digest: Hash of the object as the planner built it.
        body: The object; None where only its name and hash are kept.
    """

    ref: Ref
    digest: str
    body: Mapping[str, Any] | None = None

    @property
    def kind(self) -> Kind:
        """Its kind."""
        return BY_NAME[self.ref.kind]

    def over(self, uid: str) -> "Wanted":
        """The same, for this very object: what someone has since made in its place is left alone."""
        body = self.body or {}
        return Wanted(self.ref, self.digest, {**body, "metadata": {**body["metadata"], "uid": uid}})

    def anew(self) -> "Wanted":
        """The same in place of what is gone, whatever its uid."""
        body = self.body or {}
        metadata = {key: value for key, value in body["metadata"].items() if key != "uid"}
        return Wanted(self.ref, self.digest, {**body, "metadata": metadata})

    def without_body(self) -> "Wanted":
        """The same, small enough to keep for thousands of resources."""
        return Wanted(self.ref, self.digest)


def wanted_objects(objects: Iterable[Mapping[str, Any]], *, name: str, uid: str) -> tuple[Wanted, ...]:
    """Makes a resource the owner of its objects.

    Args:
        objects: What the planner built, in its order.
        name: The resource's name.
        uid: The resource's uid.
    """
    owner = {
        "apiVersion": TIER.api_version,
        "kind": TIER.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        # the resource can go although a child is slow to
        "blockOwnerDeletion": False,
    }
    return tuple(_wanted(each, owner) for each in objects)


def _wanted(document: Mapping[str, Any], owner: Mapping[str, Any]) -> Wanted:
    text = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(text).hexdigest()[:16]
    annotations = {**document["metadata"].get("annotations", {}), APPLIED_HASH: digest}
    metadata = {**document["metadata"], "annotations": annotations, "ownerReferences": [dict(owner)]}
    return Wanted(ref_of(document), digest, {**document, "metadata": metadata})
