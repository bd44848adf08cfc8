"""The pods of all resources: of one that is not ready why, of a ready engine its address."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kvtier_operator.planning.objects.names import COMPONENT_LABEL, INSTANCE_LABEL, Component
from kvtier_operator.reconcile.facts.pod import PodTrouble, pod_trouble, ready_address
from kvtier_operator.reconcile.reflector import Place

_Group = tuple[str, str, str]


class Pods:
    """By resource and component.

    `changed` is called with namespace and name of the resource that a pod belongs to.
    """

    def __init__(self, changed: Callable[[str, str], None]) -> None:
        self._changed = changed
        self._groups: dict[_Group, dict[str, PodTrouble]] = {}
        self._engines: dict[Place, dict[str, str]] = {}

    def troubles(self, namespace: str, instance: str, component: Component) -> tuple[PodTrouble, ...]:
        """The pods of one resource's engines or picker that are not ready, the most telling first."""
        found = self._groups.get((namespace, instance, component.value), {})
        return tuple(sorted(found.values(), key=lambda each: (each.rank, each.name)))

    def engine_address(self, namespace: str, instance: str) -> str | None:
        """Address of one ready engine of a resource; always the same one while its pods are."""
        found = self._engines.get((namespace, instance))
        return found[min(found)] if found else None

    def seen(self, document: Mapping[str, Any]) -> None:
        """Takes a pod from a list or a watch."""
        group, name = _group(document), document["metadata"]["name"]
        self._keep_address(group, name, ready_address(document))
        trouble = pod_trouble(document)
        if trouble is None:
            self._forget(group, name)
        elif self._groups.get(group, {}).get(name) != trouble:
            self._groups.setdefault(group, {})[name] = trouble
            self._changed(group[0], group[1])

    def gone(self, document: Mapping[str, Any]) -> None:
        """A pod is no longer there."""
        group, name = _group(document), document["metadata"]["name"]
        self._keep_address(group, name, None)
        self._forget(group, name)

    def only(self, namespace: str | None, places: set[Place]) -> None:
        """A list (of a namespace, or of all) is complete: other pods are gone."""
        for group, pods in [*self._groups.items()]:
            if namespace in (None, group[0]):
                for name in [name for name in pods if (group[0], name) not in places]:
                    self._forget(group, name)
        for (within, instance), engines in [*self._engines.items()]:
            if namespace in (None, within):
                for name in [name for name in engines if (within, name) not in places]:
                    self._keep_address((within, instance, Component.ENGINE.value), name, None)

    def _keep_address(self, group: _Group, name: str, address: str | None) -> None:
        namespace, instance, component = group
        if component != Component.ENGINE.value:
            return
        engines = self._engines.setdefault((namespace, instance), {})
        if address:
            engines[name] = address
        else:
            engines.pop(name, None)
        if not engines:
            del self._engines[namespace, instance]

    def _forget(self, group: _Group, name: str) -> None:
        pods = self._groups.get(group, {})
        if pods.pop(name, None) is not None:
            self._changed(group[0], group[1])
        if not pods:
            self._groups.pop(group, None)


@dataclass(frozen=True, slots=True)
class PodSink:
    """Takes what one reflector sees, in one namespace or in all."""

    pods: Pods
    namespace: str | None

    def seen(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        self.pods.seen(document)

    def gone(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        self.pods.gone(document)

    def only(self, places: set[Place]) -> None:
        """As reflector.Sink."""
        self.pods.only(self.namespace, places)


def _group(document: Mapping[str, Any]) -> _Group:
    metadata = document["metadata"]
    labels = metadata.get("labels", {})
    return (
        metadata["namespace"],
        labels.get(INSTANCE_LABEL, ""),
        labels.get(COMPONENT_LABEL, ""),
    )
