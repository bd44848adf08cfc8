"""The KVCacheTiers as last seen, each in as few bytes as that takes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from kvtier_operator.reconcile.cache.memory_limit import OBJECTS_BYTES, Room
from kvtier_operator.reconcile.facts.found_config import Found
from kvtier_operator.reconcile.loop.cached_plan import Planned
from kvtier_operator.reconcile.observe.engine_observation import Sighting

UNKNOWN: Final = "Unknown"


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
        model: What is known of its model; None before it was looked for.
        complete: Whether all objects of a plan have once been there.
        namespace_ends: Whether its namespace is being deleted: nothing can be made there any more.
        sighting: What its engines said of their tiers.
        looked_for: Hash of the engines that were last looked for.
        looks: How often in vain.
        look_due: When to look again, by the loop's clock.
        not_taken: What an engine last said that cannot be, and which; empty since one said what can.
        told: What was last told of a round that came to no end; empty since one did.
    """

    planned: Planned | None = None
    model: Found | None = None
    complete: bool = False
    namespace_ends: bool = False
    sighting: Sighting | None = None
    looked_for: str = ""
    looks: int = 0
    look_due: float = 0.0
    not_taken: str = ""
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
        ready: Status of its condition Ready.
        refusal: Why its spec is not kept; empty for any other.
        memory: The same object for as long as the uid is the same.
    """

    uid: str
    generation: int
    version: int
    deleting: bool
    spec: bytes
    status: bytes
    ready: str
    memory: Memory
    refusal: str = ""

    @property
    def kept_bytes(self) -> int:
        """What it takes of the room for resources; one whose spec is not kept has no objects planned."""
        return 0 if self.refusal else OBJECTS_BYTES + len(self.spec) + len(self.status)


class Tiers:
    """All of them."""

    def __init__(self) -> None:
        self._by_key: dict[Key, Tier] = {}
        self._room = Room()

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Key]:
        return iter([*self._by_key])

    def get(self, key: Key) -> Tier | None:
        """One of them."""
        return self._by_key.get(key)

    def seen(self, document: Mapping[str, Any]) -> Key | None:
        """Takes a resource from a list or a watch; None where it was known so or newer.

        One that there was no room for is looked at again as it is: others may have gone.
        """
        key, metadata = key_of(document), document["metadata"]
        known, version = self._by_key.get(key), int(metadata["resourceVersion"])
        if known is not None and (
            known.version > version or (known.version == version and not known.refusal)
        ):
            return None
        same = known is not None and known.uid == metadata["uid"]
        memory = known.memory if known is not None and same else Memory()
        self._drop(key)
        new = self._by_key[key] = self._tier(document, memory, known if same else None)
        self._room.take(key.namespace, new.kept_bytes)
        if known is not None and known.version == version and known.refusal == new.refusal:
            return None
        if known is not None and known.refusal != new.refusal:
            memory.planned = None
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
            self._drop(key)

    def _drop(self, key: Key) -> None:
        if (known := self._by_key.pop(key, None)) is not None:
            self._room.take(key.namespace, -known.kept_bytes)

    def _tier(self, document: Mapping[str, Any], memory: Memory, before: Tier | None) -> Tier:
        """What is kept of a resource; a spec that was kept is for as long as it is the same."""
        metadata, status = document["metadata"], document.get("status") or {}
        spec_text, status_text = orjson.dumps(document.get("spec")), orjson.dumps(status)
        refusal = ""
        if before is None or before.refusal or before.generation != metadata["generation"]:
            refusal = self._room.refusal(metadata["namespace"], len(spec_text), len(status_text))
        kept = {
            "apiVersion": document["apiVersion"],
            "kind": document["kind"],
            "metadata": {key: metadata[key] for key in ("name", "namespace", "uid", "generation")},
            "spec": None if refusal else orjson.Fragment(spec_text),
        }
        conditions = status.get("conditions") or ()
        return Tier(
            uid=metadata["uid"],
            generation=metadata["generation"],
            version=int(metadata["resourceVersion"]),
            deleting="deletionTimestamp" in metadata,
            spec=orjson.dumps(kept),
            status=status_text,
            ready=next((each["status"] for each in conditions if each["type"] == "Ready"), UNKNOWN),
            memory=memory,
            refusal=refusal,
        )


def key_of(document: Mapping[str, Any]) -> Key:
    """The key of a resource."""
    return Key(document["metadata"]["namespace"], document["metadata"]["name"])
