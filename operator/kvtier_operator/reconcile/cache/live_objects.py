"""The objects that carry kvtier's label, and all HTTPRoutes, as the watches show them."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from kvtier_common.kubernetes.answers import Place
from kvtier_operator.planning.base.names import MANAGED_BY, MANAGED_BY_LABEL
from kvtier_operator.planning.router.route_order import Claim, Hidden, RouteOrder, claim_of
from kvtier_operator.reconcile.api_server import Kind, Ref
from kvtier_operator.reconcile.cache.live_object import (
    LiveObject,
    ManifestStore,
    live_object_of,
    live_ref,
    manifest_of,
    version_of,
)
from kvtier_operator.reconcile.facts.objects import route_parents


class LiveObjectCache:
    """The live objects by ref and by owner; `manifests` are of those that are not known to be in sync.

    `changed` is called with namespace and name of the owner, and whether more than a status changed.
    """

    def __init__(self, changed: Callable[[str, str, bool], None]) -> None:
        self._changed = changed
        self.manifests = ManifestStore()
        self._by_ref: dict[Ref, LiveObject] = {}
        self._by_owner: dict[tuple[str, str], set[Ref]] = {}
        """By namespace and uid: an owner has objects in its own namespace alone, whatever others say."""
        self._deletions_known_until: dict[str, int] = {}
        """By kind: the resource version up to which deletions are known."""

    def __len__(self) -> int:
        return len(self._by_ref)

    def get(self, ref: Ref) -> LiveObject | None:
        """The object of a ref, whoever owns it."""
        return self._by_ref.get(ref)

    def of(self, namespace: str, owner_uid: str) -> Iterator[LiveObject]:
        """The objects that a resource of that namespace owns."""
        return (self._by_ref[ref] for ref in self._by_owner.get((namespace, owner_uid), ()))

    def upsert(self, kind: Kind, document: Mapping[str, Any]) -> None:
        """Takes an object from a list, a watch or the answer to a write; an older version is ignored.

        Where one object takes another's name, the later one has the higher resource versions.
        """
        known = self._by_ref.get(live_ref(kind, document))
        if known is not None and known.version >= version_of(document):
            return
        text = manifest_of(document)
        new = live_object_of(kind, document, text)
        if known is not None and new.orphaned and known.uid == new.uid:
            new.owner_uid, new.owner_name = known.owner_uid, known.owner_name
        same = known is not None and known.uid == new.uid and known.manifest_hash == new.manifest_hash
        if known is not None and same:
            new.synced_digest, new.manifest, known.manifest = known.synced_digest, known.manifest, None
        else:
            if known is not None:
                known.release()
            new.manifest = self.manifests.keep(text)
        self._put(new, known)
        if not same or (known is not None and known.report != new.report):
            self._notify(new, known, manifest=not same)

    def take_answer(self, kind: Kind, document: Mapping[str, Any], digest: str) -> None:
        """Takes the answer to a write: in this version the object is in sync.

        A watch may be faster than the answer and show someone's later change, which need not be in sync, or
        someone's deletion, after which the object is not there any more. Where a deletion is not certain, as
        with watches of several namespaces, the object's own watch will show it.
        """
        ref, version = live_ref(kind, document), version_of(document)
        if self.get(ref) is None and version < self._deletions_known_until.get(kind.kind, 0):
            return
        self.upsert(kind, document)
        live_object = self._by_ref[ref]
        if live_object.version == version:
            live_object.mark_synced(digest)

    def delete(self, kind: Kind, document: Mapping[str, Any]) -> None:
        """An object was deleted or lost its label; one that was written since stays."""
        known, version = self._by_ref.get(live_ref(kind, document)), version_of(document)
        self._note_deletions_until(kind, version)
        if known is not None and known.uid == document["metadata"]["uid"] and known.version <= version:
            self._drop(known)

    def replace(self, kind: Kind, namespace: str | None, places: set[Place], version: int) -> None:
        """A list of a kind (in a namespace, or in all) is complete: other objects, unless newer, are gone."""
        self._note_deletions_until(kind, version)
        for live_object in [*self._of_kind(kind)]:
            here = namespace in (None, live_object.ref.namespace)
            if (
                here
                and live_object.version <= version
                and (live_object.ref.namespace, live_object.ref.name) not in places
            ):
                self._drop(live_object)

    def drop_kind(self, kind: Kind) -> None:
        """The cluster no longer serves a kind."""
        for live_object in [*self._of_kind(kind)]:
            self._drop(live_object)

    def _of_kind(self, kind: Kind) -> Iterator[LiveObject]:
        return (live_object for live_object in self._by_ref.values() if live_object.ref.kind == kind.kind)

    def _note_deletions_until(self, kind: Kind, version: int) -> None:
        self._deletions_known_until[kind.kind] = max(version, self._deletions_known_until.get(kind.kind, 0))

    def _put(self, new: LiveObject, known: LiveObject | None) -> None:
        if known is not None and known.owner_uid != new.owner_uid:
            self._disown(known)
        self._by_ref[new.ref] = new
        if new.owner_uid:
            self._by_owner.setdefault(_owner(new), set()).add(new.ref)

    def _drop(self, live_object: LiveObject) -> None:
        live_object.release()
        del self._by_ref[live_object.ref]
        self._disown(live_object)
        self._notify(live_object, manifest=True)

    def _disown(self, live_object: LiveObject) -> None:
        refs = self._by_owner.get(_owner(live_object), set())
        refs.discard(live_object.ref)
        if not refs:
            self._by_owner.pop(_owner(live_object), None)

    def _notify(self, live_object: LiveObject, before: LiveObject | None = None, *, manifest: bool) -> None:
        """Tells the owner of an object, and the owner before where it was another one."""
        names = {
            version.owner_name: None
            for version in (live_object, before)
            if version is not None and version.owner_name
        }
        for name in names:
            self._changed(live_object.ref.namespace, name, manifest)


def _owner(live_object: LiveObject) -> tuple[str, str]:
    return live_object.ref.namespace, live_object.owner_uid


class RouteCache:
    """What routes claim, by Gateway and host name; nothing is kept of a route that hides no other.

    `changed` is called with namespace and name of one of kvtier's routes, which its resource has too, when it
    may be hidden from now on, no longer, or by another route.
    """

    def __init__(self, changed: Callable[[str, str], None]) -> None:
        self._changed = changed
        self._order = RouteOrder()

    def hidden_by(self, namespace: str, name: str) -> Hidden | None:
        """What hides a route of kvtier's; None if nothing does."""
        return self._order.find_hidden(f"{namespace}/{name}")

    def upsert(self, document: Mapping[str, Any], *, ours: bool) -> None:
        """Takes a route from a list or a watch."""
        refused = frozenset(parent.listeners for parent in route_parents(document) if not parent.attached)
        route = _name(document)
        self._put({route: claim_of(document, refused, ours=ours)}, {route} if ours else frozenset())

    def delete(self, document: Mapping[str, Any]) -> None:
        """A route is no longer there."""
        self._put({_name(document): None})

    def replace(self, namespace: str | None, places: set[Place]) -> None:
        """A list (of a namespace, or of all) is complete: other routes are gone."""
        there = {f"{place[0]}/{place[1]}" for place in places}
        here = (route for route in self._order if namespace in (None, route.partition("/")[0]))
        self._put({route: None for route in here if route not in there})

    def _put(self, changes: Mapping[str, Claim | None], asking: AbstractSet[str] = frozenset()) -> None:
        for route in self._order.put(changes, asking):
            self._changed(*route.split("/", 1))


@dataclass(frozen=True, slots=True)
class KindSink:
    """The sink of one kind's reflector, in one namespace or in all."""

    live_objects: LiveObjectCache
    kind: Kind
    namespace: str | None
    routes: RouteCache | None = None  # takes them too, whoever made them

    def upsert(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        ours = document["metadata"].get("labels", {}).get(MANAGED_BY_LABEL) == MANAGED_BY
        if ours:
            self.live_objects.upsert(self.kind, document)
        else:  # as a watch by label would tell of one that lost it
            self.live_objects.delete(self.kind, document)
        if self.routes is not None:
            self.routes.upsert(document, ours=ours)

    def delete(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        self.live_objects.delete(self.kind, document)
        if self.routes is not None:
            self.routes.delete(document)

    def replace(self, places: set[Place], version: int) -> None:
        """As reflector.Sink."""
        self.live_objects.replace(self.kind, self.namespace, places, version)
        if self.routes is not None:
            self.routes.replace(self.namespace, places)


def _name(document: Mapping[str, Any]) -> str:
    return f"{document['metadata'].get('namespace', '')}/{document['metadata']['name']}"
