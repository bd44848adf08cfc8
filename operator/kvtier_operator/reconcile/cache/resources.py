"""The KVCacheTiers as last seen, each in as few bytes as that takes, and a limit to what all of them take.

Whoever may create one may create thousands, and the operator that they would kill serves everybody.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from kvtier_operator.api.parse import MOST_SPEC_BYTES, size_problem
from kvtier_operator.reconcile.facts.cached_plan import CachedPlan, EngineObservation, FoundModelConfig

MOST_OF_NAMESPACE_BYTES: Final = 64 << 20
MOST_BYTES: Final = 128 << 20
"""Of all: with the 70 MiB of an operator that serves none, below its limit of 256 MiB."""
OBJECTS_BYTES: Final = 48 << 10
"""Of a resource beside spec and status: its plan and what is kept of its objects (`make bench-operator`)."""
UNKNOWN: Final = "Unknown"
_MOST_STATUS_BYTES: Final = 256 << 10
"""As JSON; the operator's own is never as long. Somebody else's is not kept, and so replaced."""


@dataclass(slots=True)
class MemoryLimit:
    """Counts the bytes that are kept for each namespace."""

    _namespace_bytes: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _total_bytes: int = 0

    def refusal(self, namespace: str, spec_bytes: int, status_bytes: int) -> str:
        """Why one more resource does not fit, and what to do; empty where it fits."""
        if spec_bytes > MOST_SPEC_BYTES:
            return size_problem(spec_bytes).message
        more = OBJECTS_BYTES + spec_bytes + status_bytes
        if self._namespace_bytes.get(namespace, 0) + more > MOST_OF_NAMESPACE_BYTES:
            return _no_room_text(f"the KVCacheTiers of namespace {namespace}", MOST_OF_NAMESPACE_BYTES)
        if self._total_bytes + more > MOST_BYTES:
            return _no_room_text("all KVCacheTiers of the cluster", MOST_BYTES)
        return ""

    def add(self, namespace: str, count_bytes: int) -> None:
        """Counts bytes that are kept for a namespace from now on, or no longer where negative."""
        self._total_bytes += count_bytes
        self._namespace_bytes[namespace] += count_bytes
        if not self._namespace_bytes[namespace]:
            del self._namespace_bytes[namespace]  # namespaces come and go


def _no_room_text(whose: str, most_bytes: int) -> str:
    return (
        f"{whose} have no room left in the {most_bytes >> 20} MiB that the operator has for them: delete "
        "some or make their specs shorter; this one is looked at again within minutes"
    )


class Key(NamedTuple):
    """Namespace and name of a resource."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(slots=True)
class ReconcileState:
    """What the operator remembers of a resource between reconciliations."""

    # its last plan; None before the first, and where it has to be planned anew
    cached_plan: CachedPlan | None = None
    # the configuration of its model as far as it was found; None before it was looked up
    model: FoundModelConfig | None = None
    was_complete: bool = False  # whether all objects of a plan have existed once
    store_secret_made: bool = False  # whether its store's Secret was there when it was last tried to make it
    # whether its namespace is being deleted, so that nothing can be created there
    namespace_terminating: bool = False
    observation: EngineObservation | None = None  # what its engines reported of their tiers
    engine_hash: str = ""  # hash of the engine part of the spec that was last observed, or tried to be
    failed_observations: int = 0  # tries in a row that observed nothing
    next_observation_at: float = 0.0  # when to try again, in seconds of the loop's clock
    rejected_report: str = ""  # why an engine's last report was not believed; empty where it was
    # the failure of a reconciliation that was last reported; empty since one succeeded
    reported_failure: str = ""


@dataclass(frozen=True, slots=True)
class CachedResource:
    """One KVCacheTier as last seen."""

    uid: str
    generation: int
    version: int
    deleting: bool
    spec: bytes  # apiVersion, kind, metadata as far as the planner reads it, and spec, as JSON
    status: bytes
    ready: str  # status of its condition Ready
    state: ReconcileState  # what is remembered of it; one object for as long as the uid is the same
    refusal: str = ""  # why its spec is not kept in memory; empty where it is

    @property
    def kept_bytes(self) -> int:
        """What it counts against the memory limit; one whose spec is not kept has no objects planned."""
        return 0 if self.refusal else OBJECTS_BYTES + len(self.spec) + len(self.status)


class ResourceCache:
    """The KVCacheTiers by namespace and name; `changed` is called with keys of new and changed ones."""

    def __init__(self, changed: Callable[[Key], None]) -> None:
        self._changed = changed
        self._by_key: dict[Key, CachedResource] = {}
        self._limit = MemoryLimit()

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Key]:
        return iter([*self._by_key])

    def get(self, key: Key) -> CachedResource | None:
        """The resource of a key; None where there is none."""
        return self._by_key.get(key)

    def upsert(self, document: Mapping[str, Any]) -> None:
        """Takes a resource from a list or a watch, unless it is known in this version or a newer one.

        One that did not fit into the limit is tried again as it is: others may have gone.
        """
        key = key_of(document)
        before = self._by_key.get(key)
        self._store(document)
        if self._by_key.get(key) != before:
            self._changed(key)

    def take_answer(self, document: Mapping[str, Any]) -> None:
        """Takes the answer to a write; it does not bring a resource back that was deleted meanwhile."""
        known = self._by_key.get(key_of(document))
        if known is not None and known.uid == document["metadata"]["uid"]:
            self._store(document)

    def delete(self, key: Key, uid: str) -> None:
        """A resource was deleted."""
        known = self._by_key.get(key)
        if known is not None and known.uid == uid:
            self._drop(key)

    def _store(self, document: Mapping[str, Any]) -> None:
        key, metadata = key_of(document), document["metadata"]
        known, version = self._by_key.get(key), int(metadata["resourceVersion"])
        if known is not None and (
            known.version > version or (known.version == version and not known.refusal)
        ):
            return
        same = known is not None and known.uid == metadata["uid"]
        state = known.state if known is not None and same else ReconcileState()
        self._drop(key)
        new = self._by_key[key] = self._to_cached(document, state, known if same else None)
        self._limit.add(key.namespace, new.kept_bytes)
        if known is not None and known.refusal != new.refusal:
            state.cached_plan = None

    def _drop(self, key: Key) -> None:
        if (known := self._by_key.pop(key, None)) is not None:
            self._limit.add(key.namespace, -known.kept_bytes)

    def _to_cached(
        self, document: Mapping[str, Any], state: ReconcileState, before: CachedResource | None
    ) -> CachedResource:
        """What is kept of a resource; a spec that once fitted into the limit stays until it changes."""
        metadata, status = document["metadata"], document.get("status") or {}
        spec_text, status_text = orjson.dumps(document.get("spec")), orjson.dumps(status)
        if len(status_text) > _MOST_STATUS_BYTES:
            status, status_text = {}, orjson.dumps({})
        refusal = ""
        if before is None or before.refusal or before.generation != metadata["generation"]:
            refusal = self._limit.refusal(metadata["namespace"], len(spec_text), len(status_text))
        kept = {
            "apiVersion": document["apiVersion"],
            "kind": document["kind"],
            "metadata": {key: metadata[key] for key in ("name", "namespace", "uid", "generation")},
            "spec": None if refusal else orjson.Fragment(spec_text),
        }
        conditions = status.get("conditions") or ()
        return CachedResource(
            uid=metadata["uid"],
            generation=metadata["generation"],
            version=int(metadata["resourceVersion"]),
            deleting="deletionTimestamp" in metadata,
            spec=orjson.dumps(kept),
            status=status_text,
            ready=next(
                (condition["status"] for condition in conditions if condition["type"] == "Ready"), UNKNOWN
            ),
            state=state,
            refusal=refusal,
        )


def key_of(document: Mapping[str, Any]) -> Key:
    """The key of a KVCacheTier."""
    return Key(document["metadata"]["namespace"], document["metadata"]["name"])
