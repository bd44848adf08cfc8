"""What surrounds the resources of a cluster, as far as planning reads it: nodes and storage classes."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kvtier_common.kubernetes.answers import Place
from kvtier_operator.planning.base.node import Node, node_from_object
from kvtier_operator.planning.cluster.storage import StorageClass, storage_class_from_object

ObservedT = TypeVar("ObservedT")


class _ClusterCache(Generic[ObservedT]):
    """The sink of the reflector of a kind without namespaces.

    `changed` is called when a plan may depend on the change, which none does on a node's heartbeat.
    """

    def __init__(self, read: Callable[[dict[str, Any]], ObservedT], changed: Callable[[], None]) -> None:
        self._read = read
        self._changed = changed
        self._by_name: dict[str, ObservedT] = {}
        self.version = 0

    def _in_order(self) -> tuple[ObservedT, ...]:
        return tuple(self._by_name[name] for name in sorted(self._by_name))

    def upsert(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        name, observed = document["metadata"]["name"], self._read(document)
        if self._by_name.get(name) != observed:
            self._by_name[name] = observed
            self._bump()

    def delete(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        if self._by_name.pop(document["metadata"]["name"], None) is not None:
            self._bump()

    def replace(self, places: set[Place], version: int) -> None:
        """As reflector.Sink."""
        del version  # nobody else tells of these kinds
        if gone := self._by_name.keys() - {name for _, name in places}:
            for name in gone:
                del self._by_name[name]
            self._bump()

    def _bump(self) -> None:
        self.version += 1
        self._changed()


class NodeCache(_ClusterCache[Node]):
    """The cluster's nodes."""

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__(node_from_object, changed)

    @property
    def all(self) -> tuple[Node, ...]:
        """Every node, by name."""
        return self._in_order()

    def touch(self) -> None:
        """Counts as a change although no node changed: nodes can be listed now, or no longer."""
        self._bump()


class StorageClassCache(_ClusterCache[StorageClass]):
    """The cluster's storage classes, known once they were listed."""

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__(storage_class_from_object, changed)
        self._listed = False

    @property
    def all(self) -> tuple[StorageClass, ...] | None:
        """Every storage class, by name; None until they were listed, or where they may not be."""
        return self._in_order() if self._listed else None

    def replace(self, places: set[Place], version: int) -> None:
        """As reflector.Sink."""
        first, self._listed = not self._listed, True
        super().replace(places, version)
        if first:
            self._bump()

    def set_access_problem(self, why: str) -> None:
        """Notes why they cannot be listed: what is known may be wrong by now."""
        if why and self._listed:
            self._by_name.clear()
            self._listed = False
            self._bump()
