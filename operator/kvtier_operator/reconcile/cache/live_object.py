"""One live object of kvtier's, in as few bytes as that takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any, Final

import orjson

from kvtier_operator.reconcile.api_server.kinds import Kind, Ref
from kvtier_operator.reconcile.apply.desired import APPLIED_HASH
from kvtier_operator.reconcile.apply.writer import FIELD_MANAGER
from kvtier_operator.reconcile.cache.manifests import Content
from kvtier_operator.reconcile.facts.deployment import DeploymentFacts, deployment_facts
from kvtier_operator.reconcile.facts.gateway_parents import ParentFacts, pool_parents, route_parents

_NOT_CONTENT: Final = frozenset({"status", "metadata", "apiVersion", "kind"})
_MOST_CHARACTERS: Final = 253
"""Kept of an owner's name and uid, and of a hash: the API server takes any text for them."""
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
        applied: The hash in its annotation.
        content: Its content until it was found to match what is wanted, and where there is room for it.
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
    applied: str
    content: Content | None = None
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
        self.matched = digest
        self.let_go()

    def let_go(self) -> None:
        """Its content is of no more use."""
        if self.content is not None:
            self.content.let_go()
            self.content = None


def owner_of(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Uid and name of what controls an object, a KVCacheTier or not; empty where nothing does."""
    for owner in metadata.get("ownerReferences", ()):
        if owner.get("controller"):
            return intern(owner["uid"][:_MOST_CHARACTERS]), intern(owner["name"][:_MOST_CHARACTERS])
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


def child_of(kind: Kind, document: Mapping[str, Any], content: bytes) -> Child:
    """What is kept of an object, but for the content itself."""
    metadata = document["metadata"]
    annotations = metadata.get("annotations", {})
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
        applied=annotations.get(APPLIED_HASH, "")[:_MOST_CHARACTERS],
        lost=is_lost(metadata),
        facts=deployment_facts(document) if kind.kind == "Deployment" else None,
        parents=parents(document) if parents else (),
    )


def content_of(document: Mapping[str, Any]) -> bytes:
    """What someone may have edited, as JSON: not the status, nor what the server itself notes down."""
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
    content = {key: value for key, value in document.items() if key not in _NOT_CONTENT}
    return orjson.dumps({"metadata": kept} | content, option=orjson.OPT_SORT_KEYS)
