"""One live object that carries kvtier's label, in as few bytes as that takes.

Its manifest is kept until it is found in sync, with a limit for each and one for all: whoever may create an
object can give it kvtier's label and any owner, and then it is never compared.
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any, Final

import orjson

from kvtier_operator.reconcile.api_server import Kind, Ref
from kvtier_operator.reconcile.facts.cached_plan import APPLIED_HASH, FIELD_MANAGER
from kvtier_operator.reconcile.facts.objects import (
    AutoscalerFacts,
    DeploymentFacts,
    ParentFacts,
    autoscaler_facts,
    deployment_facts,
    pool_parents,
    route_parents,
)

_MOST_OBJECT_BYTES: Final = 256 << 10
"""As JSON; what a spec of 64 KiB makes is shorter."""
_MOST_BYTES: Final = 32 << 20
"""Compressed; the objects of one resource have 10 KB."""
_NOT_MANIFEST: Final = frozenset({"status", "metadata", "apiVersion", "kind"})
_MOST_CHARACTERS: Final = 253
"""Kept of an owner's name and uid, and of a hash: the API server takes any text for them."""
_OTHERS_ANNOTATIONS: Final = ("deployment.kubernetes.io/", "kubectl.kubernetes.io/")
_APPLIED: Final = (FIELD_MANAGER, "Apply")
_PARENTS: Final = {"HTTPRoute": route_parents, "InferencePool": pool_parents}


@dataclass(slots=True)
class ManifestStore:
    """Keeps manifests compressed, up to a limit."""

    most_bytes: int = _MOST_BYTES
    kept_bytes: int = 0

    def keep(self, text: bytes) -> "CompressedManifest | None":
        """Keeps a manifest; None where the limit leaves no room: the object then counts as out of sync."""
        if len(text) > _MOST_OBJECT_BYTES:
            return None
        packed = zlib.compress(text, 1)
        if self.kept_bytes + len(packed) > self.most_bytes:
            return None
        self.kept_bytes += len(packed)
        return CompressedManifest(packed, self)


@dataclass(slots=True)
class CompressedManifest:
    """The manifest of one object."""

    _packed: bytes
    _store: ManifestStore

    def read(self) -> Any:  # noqa: ANN401 - as JSON is
        """The manifest as plain values."""
        return orjson.loads(zlib.decompress(self._packed))

    def release(self) -> None:
        """Gives its memory back; it cannot be read after that."""
        self._store.kept_bytes -= len(self._packed)
        self._packed = b""


@dataclass(slots=True)
class LiveObject:
    """One live object as last seen."""

    ref: Ref
    uid: str
    owner_uid: str  # uid of its controller, a KVCacheTier or not; of an orphan that of its last controller
    owner_name: str
    version: int
    deleting: bool
    manifest_hash: int  # hash of its manifest; the hash is another one in every process
    applied_digest: str  # digest in its annotation: of the desired object that was last applied
    # its manifest until it was found in sync; None too where the limit left no room for it
    manifest: CompressedManifest | None = None
    # whether kvtier applied it and it has no controller any more: someone removed its owner
    orphaned: bool = False
    synced_digest: str = ""  # digest of the desired object that it was last found to be in sync with
    facts: DeploymentFacts | None = None  # what the status of a Deployment says
    parents: tuple[ParentFacts, ...] = ()  # what its Gateways say of an HTTPRoute or an InferencePool
    autoscaler: AutoscalerFacts | None = None  # what the status of an autoscaler says
    holds_replicas: bool = False  # whether a Deployment's number of pods is one that kvtier applied

    @property
    def report(self) -> object:
        """What controllers report of it, which is no part of its manifest."""
        return self.facts, self.parents, self.autoscaler, self.deleting

    def mark_synced(self, digest: str) -> None:
        """Notes that it is in sync: its manifest need not be kept to be compared again."""
        self.synced_digest = digest
        self.release()

    def release(self) -> None:
        """Gives the memory of its manifest back."""
        if self.manifest is not None:
            self.manifest.release()
            self.manifest = None


def owner_of(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Uid and name of an object's controller, a KVCacheTier or not; empty where it has none."""
    for owner in metadata.get("ownerReferences", ()):
        if owner.get("controller"):
            return intern(owner["uid"][:_MOST_CHARACTERS]), intern(owner["name"][:_MOST_CHARACTERS])
    return "", ""


def is_orphaned(metadata: Mapping[str, Any]) -> bool:
    """Whether kvtier applied an object that has no controller: someone removed its owner."""
    if owner_of(metadata)[0]:
        return False
    return any(True for _ in _applied_entries(metadata))


def _applied_entries(metadata: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Entries of managedFields of what kvtier applied: one a version of the API.

    Whoever may change an object may leave the manager of an entry empty, which the server leaves out then.
    """
    managers = metadata.get("managedFields", ())
    return (manager for manager in managers if (manager.get("manager"), manager.get("operation")) == _APPLIED)


def _holds_replicas(metadata: Mapping[str, Any]) -> bool:
    fields = (entry.get("fieldsV1") or {} for entry in _applied_entries(metadata))
    return any("f:replicas" in (field.get("f:spec") or {}) for field in fields)


def version_of(document: Mapping[str, Any]) -> int:
    """Resource version of an object."""
    return int(document["metadata"]["resourceVersion"])


def live_ref(kind: Kind, document: Mapping[str, Any]) -> Ref:
    """The ref of an object; items of a list do not name their kind."""
    metadata = document["metadata"]
    return Ref(kind.kind, intern(metadata.get("namespace", "")), metadata["name"])


def live_object_of(kind: Kind, document: Mapping[str, Any], manifest: bytes) -> LiveObject:
    """What is kept of an object, without its manifest."""
    metadata = document["metadata"]
    annotations = metadata.get("annotations", {})
    owner_uid, owner_name = owner_of(metadata)
    parents = _PARENTS.get(kind.kind)
    return LiveObject(
        ref=live_ref(kind, document),
        uid=metadata["uid"],
        owner_uid=owner_uid,
        owner_name=owner_name,
        version=version_of(document),
        deleting="deletionTimestamp" in metadata,
        manifest_hash=hash(manifest),
        applied_digest=annotations.get(APPLIED_HASH, "")[:_MOST_CHARACTERS],
        orphaned=is_orphaned(metadata),
        facts=deployment_facts(document) if kind.kind == "Deployment" else None,
        parents=parents(document) if parents else (),
        autoscaler=autoscaler_facts(kind.kind, document),
        holds_replicas=kind.kind == "Deployment" and _holds_replicas(metadata),
    )


def manifest_of(document: Mapping[str, Any]) -> bytes:
    """The part of an object that someone may have edited, as JSON: no status, no bookkeeping."""
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
    rest = {key: value for key, value in document.items() if key not in _NOT_MANIFEST}
    return orjson.dumps({"metadata": kept} | rest, option=orjson.OPT_SORT_KEYS)
