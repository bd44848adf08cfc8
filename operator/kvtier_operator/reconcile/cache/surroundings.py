"""What surrounds the resources of a cluster, as far as planning reads it: nodes and storage classes."""

from collections.abc import Callable
from typing import Any

from kvtier_common.kubernetes.answers import Place
from kvtier_operator.planning.base.node import Node, node_from_object
from kvtier_operator.planning.cluster.storage import StorageClass, storage_class_from_object


class NodeCache:
    """The sink of the nodes' reflector; `changed` is called when a plan may depend on the change.

    A node's heartbeat is no such change.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._by_name: dict[str, Node] = {}
        self.version = 0

    @property
    def all(self) -> tuple[Node, ...]:
        """Every node, by name."""
        return tuple(self._by_name[name] for name in sorted(self._by_name))

    def upsert(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        node = node_from_object(document)
        if self._by_name.get(node.name) != node:
            self._by_name[node.name] = node
            self._bump()

    def delete(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        if self._by_name.pop(document["metadata"]["name"], None) is not None:
            self._bump()

    def replace(self, places: set[Place], version: int) -> None:
        """As reflector.Sink."""
        del version  # nobody else tells of nodes
        names = {name for _, name in places}
        for name in [name for name in self._by_name if name not in names]:
            del self._by_name[name]
            self._bump()

    def touch(self) -> None:
        """Counts as a change although no node changed: nodes can be listed now, or no longer."""
        self._bump()

    def _bump(self) -> None:
        self.version += 1
        self._changed()


class StorageClassCache:
    """The sink of the storage classes' reflector; `changed` is called when a plan may depend on it."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._by_name: dict[str, StorageClass] = {}
        self._listed = False
        self.version = 0

    @property
    def all(self) -> tuple[StorageClass, ...] | None:
        """Every storage class, by name; None until they were listed, or where they may not be."""
        return tuple(self._by_name[name] for name in sorted(self._by_name)) if self._listed else None

    def upsert(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        storage_class = storage_class_from_object(document)
        if self._by_name.get(storage_class.name) != storage_class:
            self._by_name[storage_class.name] = storage_class
            self._bump()

    def delete(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        if self._by_name.pop(document["metadata"]["name"], None) is not None:
            self._bump()

    def replace(self, places: set[Place], version: int) -> None:
        """As reflector.Sink."""
        del version  # nobody else tells of storage classes
        names = {name for _, name in places}
        if not self._listed or self._by_name.keys() - names:
            self._by_name = {name: self._by_name[name] for name in self._by_name.keys() & names}
            self._listed = True
            self._bump()

    def set_access_problem(self, why: str) -> None:
        """Notes why they cannot be listed: what is known may be wrong by now."""
        if why and self._listed:
            self._by_name.clear()
            self._listed = False
            self._bump()

    def _bump(self) -> None:
        self.version += 1
        self._changed()
