"""The objects that carry kvtier's label, as the watches show them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kvtier_operator.reconcile.api_server.kinds import Kind, Ref
from kvtier_operator.reconcile.cache.live_object import Child, child_of, content_of, live_ref, version_of
from kvtier_operator.reconcile.cache.manifests import ContentRoom
from kvtier_operator.reconcile.cache.reflector import Place


class Children:
    """All of them, by ref and by owner.

    `changed` is called with namespace and name of the owner, and whether more than a status changed.

    Attributes:
        room: What is kept of their contents.
    """

    def __init__(self, changed: Callable[[str, str, bool], None]) -> None:
        self._changed = changed
        self.room = ContentRoom()
        self._by_ref: dict[Ref, Child] = {}
        self._by_owner: dict[str, set[Ref]] = {}
        self._gone: dict[str, int] = {}
        """By kind: the version up to which it was heard what is gone."""

    def __len__(self) -> int:
        return len(self._by_ref)

    def get(self, ref: Ref) -> Child | None:
        """A child, whoever owns it."""
        return self._by_ref.get(ref)

    def of(self, owner_uid: str) -> Iterator[Child]:
        """The children of one resource."""
        return (self._by_ref[ref] for ref in self._by_owner.get(owner_uid, ()))

    def seen(self, kind: Kind, document: Mapping[str, Any]) -> Child:
        """Takes an object from a list, a watch or a write's answer; an older version is ignored.

        Of two objects that had one name after each other, the later one's versions are the higher ones.
        """
        known = self._by_ref.get(live_ref(kind, document))
        if known is not None and known.version >= version_of(document):
            return known
        text = content_of(document)
        new = child_of(kind, document, text)
        if known is not None and new.lost and known.uid == new.uid:
            new.owner_uid, new.owner_name = known.owner_uid, known.owner_name
        same = known is not None and known.uid == new.uid and known.digest == new.digest
        if known is not None and same:
            new.matched, new.content, known.content = known.matched, known.content, None
        else:
            if known is not None:
                known.let_go()
            new.content = self.room.keep(text)
        self._put(new, known)
        if not same or (known is not None and known.reported != new.reported):
            self._notify(new, known, content=not same)
        return new

    def written(self, kind: Kind, document: Mapping[str, Any], digest: str) -> None:
        """Takes a write's answer, which is as wanted.

        Whatever is newer is not: someone's change after ours, which a watch may show before the answer comes.
        So may it someone's deletion: what was written is not there any more. Where that is not certain, as
        with several namespaces' watches, the object's own watch will show it.
        """
        version = version_of(document)
        if self.get(live_ref(kind, document)) is None and version < self._gone.get(kind.kind, 0):
            return
        child = self.seen(kind, document)
        if child.version == version:
            child.settle(digest)

    def gone(self, kind: Kind, document: Mapping[str, Any]) -> None:
        """An object is no longer there, or without its label; what was written since is there."""
        known, version = self._by_ref.get(live_ref(kind, document)), version_of(document)
        self._heard_gone(kind, version)
        if known is not None and known.uid == document["metadata"]["uid"] and known.version <= version:
            self._drop(known)

    def only(self, kind: Kind, namespace: str | None, places: set[Place], version: int) -> None:
        """A list of a kind (in a namespace, or in all) is complete: others, unless newer, are gone."""
        self._heard_gone(kind, version)
        for child in [*self._of_kind(kind)]:
            here = namespace in (None, child.ref.namespace)
            if here and child.version <= version and (child.ref.namespace, child.ref.name) not in places:
                self._drop(child)

    def unserved(self, kind: Kind) -> None:
        """A whole kind is gone."""
        for child in [*self._of_kind(kind)]:
            self._drop(child)

    def _of_kind(self, kind: Kind) -> Iterator[Child]:
        return (child for child in self._by_ref.values() if child.ref.kind == kind.kind)

    def _heard_gone(self, kind: Kind, version: int) -> None:
        self._gone[kind.kind] = max(version, self._gone.get(kind.kind, 0))

    def _put(self, new: Child, known: Child | None) -> None:
        if known is not None and known.owner_uid != new.owner_uid:
            self._disown(known)
        self._by_ref[new.ref] = new
        if new.owner_uid:
            self._by_owner.setdefault(new.owner_uid, set()).add(new.ref)

    def _drop(self, child: Child) -> None:
        child.let_go()
        del self._by_ref[child.ref]
        self._disown(child)
        self._notify(child, content=True)

    def _disown(self, child: Child) -> None:
        refs = self._by_owner.get(child.owner_uid, set())
        refs.discard(child.ref)
        if not refs:
            self._by_owner.pop(child.owner_uid, None)

    def _notify(self, child: Child, before: Child | None = None, *, content: bool) -> None:
        """Whose object it is, and whose it was."""
        names = {each.owner_name: None for each in (child, before) if each is not None and each.owner_name}
        for name in names:
            self._changed(child.ref.namespace, name, content)


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

    def only(self, places: set[Place], version: int) -> None:
        """As reflector.Sink."""
        self.children.only(self.kind, self.namespace, places, version)
