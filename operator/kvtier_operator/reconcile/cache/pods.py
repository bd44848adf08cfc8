"""Pods of engines, pickers and gateways: why they are not ready, and the addresses of ready engines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.kubernetes.answers import Place
from kvtier_operator.planning.objects.names import COMPONENT_LABEL, INSTANCE_LABEL, Component
from kvtier_operator.reconcile.facts.pod import NotReadyPod, ServingPod, not_ready_pod, serving_pod

_Group = tuple[str, str, str]
_CANDIDATES: Final = 4
"""A rollout has pods of two ReplicaSets."""


@dataclass(frozen=True, slots=True)
class _Pod:
    """What is kept of a pod: nothing of ready pickers, and of pods that are gone."""

    not_ready: NotReadyPod | None = None
    serving: ServingPod | None = None


_NOTHING: Final = _Pod()


class PodCache:
    """Pods by resource and component.

    `changed` is called with namespace and name of the resource whose pods changed.
    """

    def __init__(self, changed: Callable[[str, str], None]) -> None:
        self._changed = changed
        self._groups: dict[_Group, dict[str, _Pod]] = {}

    def not_ready(self, namespace: str, instance: str, component: Component) -> tuple[NotReadyPod, ...]:
        """One resource's engines, pickers or gateways that are not ready, the most telling first."""
        pods = self._groups.get((namespace, instance, component.value), {})
        not_ready = (pod.not_ready for pod in pods.values() if pod.not_ready)
        return tuple(sorted(not_ready, key=lambda each: (each.rank, each.name)))

    def serving(self, namespace: str, instance: str) -> tuple[ServingPod, ...]:
        """Pods that claim to be ready engines of a resource, by name: one of each ReplicaSet, a few in all.

        Whoever may create a pod may give it these labels and any owner, so the owner has to be looked up.
        """
        pods = self._groups.get((namespace, instance, Component.ENGINE.value), {})
        by_owner: dict[str, ServingPod] = {}
        for name in sorted(pods):
            if (pod := pods[name].serving) is not None:
                by_owner.setdefault(pod.replica_set_uid, pod)
        return tuple(by_owner.values())[:_CANDIDATES]

    def engines(self, namespace: str, instance: str) -> tuple[ServingPod, ...]:
        """All pods that claim to be ready engines of a resource, by name; whose they are is looked up."""
        pods = self._groups.get((namespace, instance, Component.ENGINE.value), {})
        return tuple(pod for name in sorted(pods) if (pod := pods[name].serving) is not None)

    def upsert(self, document: Mapping[str, Any]) -> None:
        """Takes a pod from a list or a watch."""
        group = _group(document)
        ready = serving_pod(document) if group[2] == Component.ENGINE.value else None
        self._keep(group, document["metadata"]["name"], _Pod(not_ready_pod(document), ready))

    def delete(self, document: Mapping[str, Any]) -> None:
        """A pod is no longer there."""
        self._keep(_group(document), document["metadata"]["name"], _NOTHING)

    def replace(self, namespace: str | None, places: set[Place]) -> None:
        """A list (of a namespace, or of all) is complete: other pods are gone."""
        for group, pods in [*self._groups.items()]:
            if namespace in (None, group[0]):
                for name in [name for name in pods if (group[0], name) not in places]:
                    self._keep(group, name, _NOTHING)

    def _keep(self, group: _Group, name: str, pod: _Pod) -> None:
        pods = self._groups.setdefault(group, {})
        before = pods.pop(name, _NOTHING)
        if pod != _NOTHING:
            pods[name] = pod
        if not pods:
            del self._groups[group]
        if before.not_ready != pod.not_ready:
            self._changed(group[0], group[1])


@dataclass(frozen=True, slots=True)
class PodSink:
    """The sink of one reflector, in one namespace or in all."""

    pods: PodCache
    namespace: str | None

    def upsert(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        self.pods.upsert(document)

    def delete(self, document: dict[str, Any]) -> None:
        """As reflector.Sink."""
        self.pods.delete(document)

    def replace(self, places: set[Place], version: int) -> None:
        """As reflector.Sink."""
        del version  # nobody else tells of pods
        self.pods.replace(self.namespace, places)


def _group(document: Mapping[str, Any]) -> _Group:
    metadata = document["metadata"]
    labels = metadata.get("labels") or {}
    return (
        metadata["namespace"],
        labels.get(INSTANCE_LABEL, ""),
        labels.get(COMPONENT_LABEL, ""),
    )
