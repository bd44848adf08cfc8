"""The objects that carry kvtier's label, as the watches show them, in as few bytes as that takes."""

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any, Final

import orjson

from kvtier_operator.reconcile.desired import APPLIED_HASH
from kvtier_operator.reconcile.facts.deployment import DeploymentFacts, deployment_facts
from kvtier_operator.reconcile.facts.parents import ParentFacts, pool_parents, route_parents
from kvtier_operator.reconcile.kinds import TIER, Kind, Ref
from kvtier_operator.reconcile.reflector import Place

_NOT_CONTENT: Final = frozenset({"status", "metadata", "apiVersion", "kind"})
_OTHERS_ANNOTATIONS: Final = ("deployment.kubernetes.io/", "kubectl.kubernetes.io/")
_PARENTS: Final = {"HTTPRoute": route_parents, "InferencePool": pool_parents}


@dataclass(slots=True)
class Child:
    """One live object.

    Attributes:
        ref: Which.
        uid: Its uid.
        owner_uid: Uid of the KVCacheTier that controls it; empty where none does.
        owner_name: That one's name.
        version: Its resource version.
        deleting: Whether it is on its way out.
        digest: Hash of its content, of this process.
        content: Its content, compressed JSON, until it was found to match what is wanted; None after that.
        applied: The hash in its annotation.
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


class Children:
    """All of them, by ref and by owner.

    `changed` is called with namespace and name of the owner, and whether more than a status changed.
    """

    def __init__(self, changed: Callable[[str, str, bool], None]) -> None:
        self._changed = changed
        self._by_ref: dict[Ref, Child] = {}
        self._by_owner: dict[str, set[Ref]] = {}

    def __len__(self) -> int:
        return len(self._by_ref)

    def get(self, ref: Ref) -> Child | None:
        """A child, whoever owns it."""
        return self._by_ref.get(ref)

    def of(self, owner_uid: str) -> Iterator[Child]:
        """The children of one resource."""
        return (self._by_ref[ref] for ref in self._by_owner.get(owner_uid, ()))

    def seen(self, kind: Kind, document: Mapping[str, Any]) -> Child:
        """Takes an object from a list, a watch or a write's answer; an older version is ignored."""
        new, known = _child(kind, document), self._by_ref.get(_ref(kind, document))
        if known is not None and known.uid == new.uid and known.version >= new.version:
            return known
        same = known is not None and known.uid == new.uid and known.digest == new.digest
        if known is not None and same:
            new.matched, new.content = known.matched, new.content if not known.matched else None
        self._put(new, known)
        if not same or (known is not None and known.reported != new.reported):
            self._notify(new, content=not same)
        return new

    def written(self, kind: Kind, document: Mapping[str, Any], digest: str) -> None:
        """Takes a write's answer, which is as wanted.

        Whatever is newer is not: someone's change after ours, which a watch may show before the answer comes.
        """
        child = self.seen(kind, document)
        if child.version == int(document["metadata"]["resourceVersion"]):
            child.settle(digest)

    def gone(self, kind: Kind, document: Mapping[str, Any]) -> None:
        """An object is no longer there; that of an object since made anew is ignored."""
        known = self._by_ref.get(_ref(kind, document))
        if known is not None and known.uid == document["metadata"]["uid"]:
            self._drop(known)

    def only(self, kind: Kind, namespace: str | None, places: set[Place]) -> None:
        """A list of a kind (in a namespace, or in all) is complete: others are gone."""
        for child in [*self._by_ref.values()]:
            ref = child.ref
            here = ref.kind == kind.kind and namespace in (None, ref.namespace)
            if here and (ref.namespace, ref.name) not in places:
                self._drop(child)

    def _put(self, new: Child, known: Child | None) -> None:
        if known is not None and known.owner_uid != new.owner_uid:
            self._disown(known)
        self._by_ref[new.ref] = new
        if new.owner_uid:
            self._by_owner.setdefault(new.owner_uid, set()).add(new.ref)

    def _drop(self, child: Child) -> None:
        del self._by_ref[child.ref]
        self._disown(child)
        self._notify(child, content=True)

    def _disown(self, child: Child) -> None:
        refs = self._by_owner.get(child.owner_uid, set())
        refs.discard(child.ref)
        if not refs:
            self._by_owner.pop(child.owner_uid, None)

    def _notify(self, child: Child, *, content: bool) -> None:
        if child.owner_name:
            self._changed(child.ref.namespace, child.owner_name, content)


@dataclass(frozen=True, slots=True)
class KindSink:
    """Takes what one reflector sees of one kind, in one namespace or in all."""

    children: Children
    kind: Kind
    namespace: str | None

    def seen(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        self.children.seen(self.kind, document)

    def gone(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        self.children.gone(self.kind, document)

    def only(self, places: set[Place]) -> None:
        """As reflector.Sink."""
        self.children.only(self.kind, self.namespace, places)


def owner_of(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Uid and name of the KVCacheTier that controls an object; empty where none does."""
    for owner in metadata.get("ownerReferences", ()):
        if owner.get("controller") and owner["kind"] == TIER.kind and owner["apiVersion"] == TIER.api_version:
            return intern(owner["uid"]), intern(owner["name"])
    return "", ""


def _ref(kind: Kind, document: Mapping[str, Any]) -> Ref:
    metadata = document["metadata"]
    return Ref(kind.kind, intern(metadata.get("namespace", "")), metadata["name"])


def _child(kind: Kind, document: Mapping[str, Any]) -> Child:
    metadata = document["metadata"]
    annotations = metadata.get("annotations", {})
    content = orjson.dumps(_content(document), option=orjson.OPT_SORT_KEYS)
    owner_uid, owner_name = owner_of(metadata)
    parents = _PARENTS.get(kind.kind)
    return Child(
        ref=_ref(kind, document),
        uid=metadata["uid"],
        owner_uid=owner_uid,
        owner_name=owner_name,
        version=int(metadata["resourceVersion"]),
        deleting="deletionTimestamp" in metadata,
        digest=hash(content),
        content=zlib.compress(content, 1),
        applied=annotations.get(APPLIED_HASH, ""),
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
