"""What pods meet: the cluster's nodes and storage classes, a namespace's LimitRanges and ResourceQuotas."""

import heapq
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from kvtier_common.kubernetes.answers import Place
from kvtier_operator.planning.cluster.namespace.limit_range import LimitRange, limit_range_from_object
from kvtier_operator.planning.cluster.namespace.namespace import Namespace
from kvtier_operator.planning.cluster.namespace.quota import Quota, quota_from_object
from kvtier_operator.planning.cluster.namespace.storage import StorageClass, storage_class_from_object
from kvtier_operator.planning.cluster.nodes.node import Node, node_from_object
from kvtier_operator.reconcile.api_server import LIMIT_RANGE, RESOURCE_QUOTA, Kind

_LOG: Final = logging.getLogger(__name__)
LimitT = TypeVar("LimitT")
MOST_OF_A_NAMESPACE: Final = 64
"""Of one kind: every plan in the namespace asks each of them."""
_MOST_AMOUNTS: Final = 512
"""Of one quota."""


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


class LimitStore(Generic[LimitT]):
    """The objects of one kind, as far as planning reads them."""

    def __init__(self, read: Callable[[Mapping[str, Any]], LimitT], changed: Callable[[str], None]) -> None:
        self._read = read
        self._changed = changed
        self._by_namespace: dict[str, dict[str, LimitT]] = {}
        self.listed = False

    def of(self, namespace: str) -> tuple[LimitT, ...]:
        """The first few of a namespace, by name."""
        limits = self._by_namespace.get(namespace, {})
        return tuple(limits[name] for name in heapq.nsmallest(MOST_OF_A_NAMESPACE, limits))

    def all_of(self, namespace: str) -> tuple[LimitT, ...]:
        """All of a namespace, by name."""
        limits = self._by_namespace.get(namespace, {})
        return tuple(limits[name] for name in sorted(limits))

    def count(self, namespace: str) -> int:
        """How many a namespace has."""
        return len(self._by_namespace.get(namespace, ()))

    def upsert(self, place: Place, document: Mapping[str, Any]) -> None:
        """Takes an object; one that cannot be read limits nothing."""
        try:
            limit = self._read(document)
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
            _LOG.warning("%s/%s is left out: %r", *place, error)
            self.delete(place)
            return
        namespace, name = place
        if self._by_namespace.get(namespace, {}).get(name) != limit:
            self._by_namespace.setdefault(namespace, {})[name] = limit
            self._changed(namespace)

    def delete(self, place: Place) -> None:
        """An object is gone."""
        namespace, name = place
        limits = self._by_namespace.get(namespace, {})
        if limits.pop(name, None) is not None:
            if not limits:
                del self._by_namespace[namespace]
            self._changed(namespace)

    def replace(self, namespace: str | None, places: set[Place]) -> None:
        """A list (of a namespace, or of all) is complete: others are gone."""
        there = [(where, name) for where, limits in self._by_namespace.items() for name in limits]
        for place in there:
            if namespace in (None, place[0]) and place not in places:
                self.delete(place)
        if not self.listed:
            self.listed = True
            self._changed(namespace or "")

    def forget(self, namespace: str | None) -> None:
        """Forgets what can no longer be listed: it may be wrong by now."""
        self.replace(namespace, set())
        self.listed = False
        self._changed(namespace or "")


class NamespaceLimitCache:
    """LimitRanges and quotas by namespace, and the storage classes.

    The used part of a quota is not kept: it changes with every pod, and kvtier's own pods are part of it.
    `changed` is called with the namespace, an empty one for all, when a plan may depend on the change.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._tell = changed
        self._versions: dict[str, int] = {}
        self._changes = 0
        self.limit_ranges: LimitStore[LimitRange] = LimitStore(limit_range_from_object, self._changed)
        self.quotas: LimitStore[Quota] = LimitStore(_hard_of_quota, self._changed)
        self.storage_classes: LimitStore[StorageClass] = LimitStore(storage_class_from_object, self._changed)

    def of(self, namespace: str) -> Namespace:
        """The limits of a namespace; what the operator may not list limits nothing."""
        return Namespace(
            limit_ranges=self.limit_ranges.of(namespace),
            quotas=self.quotas.of(namespace),
            storage_classes=self.storage_classes.all_of("") if self.storage_classes.listed else None,
        )

    def in_namespaces(self, namespace: str | None) -> Iterator[tuple[Kind, "NamespaceLimitSink[Any]"]]:
        """The kinds that a namespace has, each with its sink; for all namespaces where None."""
        yield LIMIT_RANGE, NamespaceLimitSink(self.limit_ranges, namespace)
        yield RESOURCE_QUOTA, NamespaceLimitSink(self.quotas, namespace)

    def version(self, namespace: str) -> int:
        """A number that changes with the limits of a namespace."""
        return max(self._versions.get(namespace, 0), self._versions.get("", 0))

    def _changed(self, namespace: str) -> None:
        self._changes += 1
        if namespace and not self.limit_ranges.count(namespace) and not self.quotas.count(namespace):
            self._versions.pop(namespace, None)  # as before it had any: namespaces come and go
        else:
            self._versions[namespace] = self._changes
        self._tell(namespace)


class NamespaceLimitSink(Generic[LimitT]):
    """The sink of one reflector, in one namespace or in all."""

    def __init__(self, store: LimitStore[LimitT], namespace: str | None) -> None:
        self._store = store
        self._namespace = namespace

    def upsert(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        self._store.upsert(_place(document), document)

    def delete(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        self._store.delete(_place(document))

    def replace(self, places: set[Place], version: int) -> None:
        """As reflector.Sink."""
        del version
        self._store.replace(self._namespace, places)

    def set_access_problem(self, why: str) -> None:
        """Notes why the kind cannot be listed; an empty text where it can."""
        if why and self._store.listed:
            self._store.forget(self._namespace)


def _hard_of_quota(document: Mapping[str, Any]) -> Quota:
    if (count := len(document["spec"].get("hard") or ())) > _MOST_AMOUNTS:
        raise ValueError(f"it bounds {count} things, {_MOST_AMOUNTS} at most")
    return quota_from_object(document, with_used=False)


def _place(document: Mapping[str, Any]) -> Place:
    metadata = document["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
