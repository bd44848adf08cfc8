"""The KVCacheTiers as last seen, each in as few bytes as that takes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from kvtier_operator.reconcile.planned import Planned
from kvtier_operator.reconcile.sighting import Sighting


class Key(NamedTuple):
    """Namespace and name of a resource."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(slots=True)
class Memory:
    """What the operator remembers of a resource while it lives.

    Attributes:
        planned: What was made of its last generation; None before that.
        complete: Whether all objects of a plan have once been there.
        namespace_ends: Whether its namespace is being deleted: nothing can be made there any more.
        sighting: What its engines said of their tiers.
        looked_for: Hash of the engines that were last looked for.
        looks: How often in vain.
        look_due: When to look again, by the loop's clock.
        told: What was last told of a round that came to no end; empty since one did.
    """

    planned: Planned | None = None
    complete: bool = False
    namespace_ends: bool = False
    sighting: Sighting | None = None
    looked_for: str = ""
    looks: int = 0
    look_due: float = 0.0
    told: str = ""


@dataclass(frozen=True, slots=True)
class Tier:
    """One resource as last seen.

    Attributes:
        uid: Its uid.
        generation: Generation of the spec.
        version: Its resource version.
        deleting: Whether it is on its way out.
        spec: apiVersion, kind, metadata as far as the planner reads it, and spec, as JSON.
        status: Its status, as JSON.
        memory: The same object for as long as the uid is the same.
    """

    uid: str
    generation: int
    version: int
    deleting: bool
    spec: bytes
    status: bytes
    memory: Memory


class Tiers:
    """All of them."""

    def __init__(self) -> None:
        self._by_key: dict[Key, Tier] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Key]:
        return iter([*self._by_key])

    def get(self, key: Key) -> Tier | None:
        """One of them."""
        return self._by_key.get(key)

    def seen(self, document: Mapping[str, Any]) -> Key | None:
        """Takes a resource from a list or a watch; None where it was known so or newer."""
        key, metadata = key_of(document), document["metadata"]
        known = self._by_key.get(key)
        if known is not None and known.version >= int(metadata["resourceVersion"]):
            return None
        same = known is not None and known.uid == metadata["uid"]
        self._by_key[key] = _tier(document, known.memory if known is not None and same else Memory())
        return key

    def written(self, document: Mapping[str, Any]) -> None:
        """Takes a write's answer; a resource that went meanwhile does not come back by it."""
        known = self._by_key.get(key_of(document))
        if known is not None and known.uid == document["metadata"]["uid"]:
            self.seen(document)

    def gone(self, key: Key, uid: str) -> None:
        """A resource was deleted."""
        known = self._by_key.get(key)
        if known is not None and known.uid == uid:
            del self._by_key[key]


def key_of(document: Mapping[str, Any]) -> Key:
    """The key of a resource."""
    return Key(document["metadata"]["namespace"], document["metadata"]["name"])


def _tier(document: Mapping[str, Any], memory: Memory) -> Tier:
    metadata = document["metadata"]
    kept = {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "metadata": {key: metadata[key] for key in ("name", "namespace", "uid", "generation")},
        "spec": document.get("spec"),
    }
    return Tier(
        uid=metadata["uid"],
        generation=metadata["generation"],
        version=int(metadata["resourceVersion"]),
        deleting="deletionTimestamp" in metadata,
        spec=orjson.dumps(kept),
        status=orjson.dumps(document.get("status") or {}),
        memory=memory,
    )
