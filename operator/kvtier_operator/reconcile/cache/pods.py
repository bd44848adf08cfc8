"""Pods of engines, pickers and gateways: why they are not ready, and the addresses of ready engines."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.kubernetes.answers import Place
from kvtier_common.one_line import one_line
from kvtier_operator.api.formats import SUBDOMAIN
from kvtier_operator.planning.base.names import COMPONENT_LABEL, INSTANCE_LABEL, Component
from kvtier_operator.planning.objects.engine.containers import DOCTOR_NAME
from kvtier_operator.reconcile.facts.cached_plan import FIELD_MANAGER
from kvtier_operator.reconcile.facts.pod_kind import controller_of

_IDLE: Final = frozenset({"ContainerCreating", "PodInitializing", ""})
_MAX_CHARACTERS: Final = 600
_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z){SUBDOMAIN}")
"""Of a ReplicaSet (k8s.io/apimachinery, IsDNS1123Subdomain)."""
_MOST_UID_CHARACTERS: Final = 64
_MOST_COST_CHARACTERS: Final = 11
"""Of a number of 32 bits with its sign."""
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation of pods: of a ReplicaSet's ready pods the one with the lowest goes first."""
_LAST: Final = 9
"""Rank of a pod without a reason."""
_Group = tuple[str, str, str]
_CANDIDATES: Final = 4
"""A rollout has pods of two ReplicaSets."""


@dataclass(frozen=True, slots=True)
class NotReadyPod:
    """A pod that is not ready, or is terminating."""

    name: str
    node: str  # its node; empty before it has one
    reason: str  # CamelCase, such as Unschedulable or ImagePullBackOff; empty while it merely starts
    message: str  # what its status says about that
    rank: int  # which of several pods to report first: the one with the lowest rank
    # whether it has a deletion timestamp: it drains, and holds its resources until then
    terminating: bool = False


def not_ready_pod(pod: Mapping[str, Any]) -> NotReadyPod | None:
    """Why a pod is not ready; None for a pod that is."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions", ())}
    node = pod.get("spec", {}).get("nodeName", "")
    if "deletionTimestamp" in metadata:
        return NotReadyPod(metadata["name"], node, "", "", _LAST, terminating=True)
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    for rank, reason, message in sorted(_findings(status, conditions), key=lambda finding: finding[0]):
        return NotReadyPod(metadata["name"], node, reason, one_line(message, _MAX_CHARACTERS), rank)
    return NotReadyPod(metadata["name"], node, "", "", _LAST)


@dataclass(frozen=True, slots=True)
class ServingPod:
    """A ready pod whose controller is a ReplicaSet, by its own metadata."""

    name: str
    address: str  # its IP, as its kubelet says
    replica_set: str  # name of the ReplicaSet in its owner references
    replica_set_uid: str  # uid of the ReplicaSet in its owner references
    uid: str = ""
    deletion_cost: str = ""  # what its annotation says of how late it is to go; empty where it has none
    cost_by_others: bool = False  # whether somebody else wrote that annotation

    def address_at(self, port: int) -> str:
        """Its address with a port, as URLs have it."""
        return f"[{self.address}]:{port}" if ":" in self.address else f"{self.address}:{port}"


def serving_pod(pod: Mapping[str, Any]) -> ServingPod | None:
    """The pod as a serving one; None where it is not ready or no ReplicaSet controls it.

    The API server takes any text for an owner's name and uid; a text that cannot be one is never looked up.
    """
    metadata, status = pod["metadata"], pod.get("status") or {}
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in status.get("conditions", ())
    )
    owner = controller_of(metadata)
    address = status.get("podIP")
    if not ready or not address or "deletionTimestamp" in metadata or owner is None:
        return None
    if (owner["apiVersion"], owner["kind"]) != ("apps/v1", "ReplicaSet"):
        return None
    if not _NAME.fullmatch(owner["name"]) or len(owner["uid"]) > _MOST_UID_CHARACTERS:
        return None
    cost = (metadata.get("annotations") or {}).get(DELETION_COST, "")
    return ServingPod(
        metadata["name"],
        address,
        owner["name"],
        owner["uid"],
        metadata.get("uid", ""),
        cost[:_MOST_COST_CHARACTERS],
        cost_by_others=bool(cost) and not _is_kvtiers_cost(metadata),
    )


def _is_kvtiers_cost(metadata: Mapping[str, Any]) -> bool:
    """Whether the annotation is as kvtier wrote it: who writes another value after it has it from then on."""
    entries = (entry for entry in metadata.get("managedFields", ()) if entry.get("manager") == FIELD_MANAGER)
    fields = ((entry.get("fieldsV1") or {}).get("f:metadata") or {} for entry in entries)
    return any(f"f:{DELETION_COST}" in (field.get("f:annotations") or {}) for field in fields)


def _findings(status: Mapping[str, Any], conditions: Mapping[str, Any]) -> Iterator[tuple[int, str, str]]:
    """Rank, reason and message of everything that is wrong."""
    if status.get("phase") == "Failed":
        yield 2, status.get("reason") or "PodFailed", status.get("message", "")
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        yield 3, scheduled.get("reason", "Unschedulable"), scheduled.get("message", "")
    for container in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        yield from _container_findings(container)


def _container_findings(container: Mapping[str, Any]) -> Iterator[tuple[int, str, str]]:
    name, state = container["name"], container.get("state", {})
    ended = state.get("terminated") or container.get("lastState", {}).get("terminated") or {}
    failed = bool(ended) and ended.get("exitCode", 0) != 0
    if failed and name == DOCTOR_NAME:
        yield 0, "DoctorFailed", ended.get("message") or f"exit code {ended['exitCode']}"
        return
    waiting = state.get("waiting", {})
    if waiting.get("reason", "") not in _IDLE and waiting.get("reason") != "CrashLoopBackOff":
        yield 1, waiting["reason"], f"container {name}: {waiting.get('message', '')}"
    if failed and not container.get("ready"):
        yield 2, *_death(name, ended, container.get("restartCount", 0))


def _death(name: str, ended: Mapping[str, Any], restarts: int) -> tuple[str, str]:
    reason = "OOMKilled" if ended.get("reason") == "OOMKilled" else "ContainerCrashed"
    message = f": {ended['message']}" if ended.get("message") else ""
    return (
        reason,
        f"container {name} ended with exit code {ended.get('exitCode')}, {restarts} restarts{message}",
    )


@dataclass(frozen=True, slots=True)
class _Pod:
    """What is kept of a pod: nothing of ready pickers, and of pods that are gone."""

    not_ready: NotReadyPod | None = None
    serving: ServingPod | None = None


_NOTHING: Final = _Pod()


class PodCache:
    """Pods by resource and component; `changed` is called with the namespace and name of the resource."""

    def __init__(self, changed: Callable[[str, str], None]) -> None:
        self._changed = changed
        self._groups: dict[_Group, dict[str, _Pod]] = {}

    def not_ready(self, namespace: str, instance: str, component: Component) -> tuple[NotReadyPod, ...]:
        """One resource's engines, pickers or gateways that are not ready, the most telling first."""
        pods = self._groups.get((namespace, instance, component.value), {})
        not_ready = (pod.not_ready for pod in pods.values() if pod.not_ready)
        return tuple(sorted(not_ready, key=lambda pod: (pod.rank, pod.name)))

    def serving(self, namespace: str, instance: str) -> tuple[ServingPod, ...]:
        """Pods that claim to be ready engines of a resource, by name: one of each ReplicaSet, a few in all.

        Whoever may create a pod may give it these labels and any owner, so the owner has to be looked up.
        """
        by_owner: dict[str, ServingPod] = {}
        for pod in self.engines(namespace, instance):
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
    return (metadata["namespace"], labels.get(INSTANCE_LABEL, ""), labels.get(COMPONENT_LABEL, ""))
