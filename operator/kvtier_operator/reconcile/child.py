"""One live object of kvtier's, in as few bytes as that takes."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any, Final

import orjson

from kvtier_operator.reconcile.desired import APPLIED_HASH
from kvtier_operator.reconcile.facts.deployment import DeploymentFacts, deployment_facts
from kvtier_operator.reconcile.facts.parents import ParentFacts, pool_parents, route_parents
from kvtier_operator.reconcile.kinds import Kind, Ref
from kvtier_operator.reconcile.writer import FIELD_MANAGER

_NOT_CONTENT: Final = frozenset({"status", "metadata", "apiVersion", "kind"})
_OTHERS_ANNOTATIONS: Final = ("deployment.kubernetes.io/", "kubectl.kubernetes.io/")
_PARENTS: Final = {"HTTPRoute": route_parents, "InferencePool": pool_parents}


@dataclass(slots=True)
class Child:
    """One live object.

    Attributes:
        ref: Which.
        uid: Its uid.
        owner_uid: Uid of what controls it, a KVCacheTier or not; of a lost one what did before.
        owner_name: That one's name.
        version: Its resource version.
        deleting: Whether it is on its way out.
        digest: Hash of its content, of this process.
        content: Its content, compressed JSON, until it was found to match what is wanted; None after that.
        applied: The hash in its annotation.
        lost: Whether kvtier made it and nobody controls it: someone took its owner away.
        matched: Hash of the wanted object that its content was found to match.
        facts: What its status says, for a Deployment.
        parents: What its Gateways say of it, for an HTTPRoute and an InferencePool.
    """

    ref: Ref
    uid: str
    owner_uid: str
    owner_name: str
    version: int
    deleting: bool
    digest: int
    content: bytes | None
    applied: str
    lost: bool = False
    matched: str = ""
    facts: DeploymentFacts | None = None
    parents: tuple[ParentFacts, ...] = ()

    @property
    def reported(self) -> object:
        """What others say of it: news, though not of its content."""
        return self.facts, self.parents, self.deleting

    def settle(self, digest: str) -> None:
        """The content is as wanted: it need not be kept to be compared again."""
        self.matched, self.content = digest, None


def owner_of(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Uid and name of what controls an object, a KVCacheTier or not; empty where nothing does."""
    for owner in metadata.get("ownerReferences", ()):
        if owner.get("controller"):
            return intern(owner["uid"]), intern(owner["name"])
    return "", ""


def is_lost(metadata: Mapping[str, Any]) -> bool:
    """Whether kvtier applied an object that nobody controls: someone took its owner away."""
    if owner_of(metadata)[0]:
        return False
    managers = metadata.get("managedFields", ())
    return any((each["manager"], each["operation"]) == (FIELD_MANAGER, "Apply") for each in managers)


def version_of(document: Mapping[str, Any]) -> int:
    """Resource version of an object."""
    return int(document["metadata"]["resourceVersion"])


def live_ref(kind: Kind, document: Mapping[str, Any]) -> Ref:
    """Its ref; items of a list do not say their kind."""
    metadata = document["metadata"]
    return Ref(kind.kind, intern(metadata.get("namespace", "")), metadata["name"])


def child_of(kind: Kind, document: Mapping[str, Any]) -> Child:
    """What is kept of an object."""
    metadata = document["metadata"]
    annotations = metadata.get("annotations", {})
    content = orjson.dumps(_content(document), option=orjson.OPT_SORT_KEYS)
    owner_uid, owner_name = owner_of(metadata)
    parents = _PARENTS.get(kind.kind)
    return Child(
        ref=live_ref(kind, document),
        uid=metadata["uid"],
        owner_uid=owner_uid,
        owner_name=owner_name,
        version=version_of(document),
        deleting="deletionTimestamp" in metadata,
        digest=hash(content),
        content=zlib.compress(content, 1),
        applied=annotations.get(APPLIED_HASH, ""),
        lost=is_lost(metadata),
        facts=deployment_facts(document) if kind.kind == "Deployment" else None,
        parents=parents(document) if parents else (),
    )


def _content(document: Mapping[str, Any]) -> dict[str, Any]:
    """What someone may have edited: not the status, nor what the server and its controllers note down."""
    metadata = document["metadata"]
    annotations = {
        key: value
        for key, value in metadata.get("annotations", {}).items()
        if not key.startswith(_OTHERS_ANNOTATIONS)
    }
    kept = {
        "labels": metadata.get("labels", {}),
        "annotations": annotations,
        "ownerReferences": metadata.get("ownerReferences", []),
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
    }
    return {"metadata": kept} | {key: value for key, value in document.items() if key not in _NOT_CONTENT}
