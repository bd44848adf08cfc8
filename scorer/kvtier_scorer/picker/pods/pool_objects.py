"""Reads InferencePools and pods as the API server sends them. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvtier_scorer.picker.pods.ready_endpoints import PodInstance
from kvtier_scorer.picker.pods.source import Endpoint
from kvtier_scorer.picker.pods.static import address_of


class MalformedObjectError(ValueError):
    """An object is not what its kind says; the message says where."""


@dataclass(frozen=True, slots=True)
class Pool:
    """An InferencePool (inference.networking.k8s.io/v1).

    Attributes:
        labels: What its pods have; pods with more labels belong to it too.
        ports: What each of them serves on.
    """

    labels: Mapping[str, str]
    ports: Sequence[int]

    @property
    def selector(self) -> str:
        """The labels as the labelSelector of a request."""
        return ",".join(f"{name}={value}" for name, value in sorted(self.labels.items()))


def pool_of(document: Mapping[str, Any]) -> Pool:
    """Reads an InferencePool.

    Raises:
        MalformedObjectError: It has no selector or no port: an empty selector would take every pod there is.
    """
    spec = _mapping(document.get("spec"))
    labels = _mapping(_mapping(spec.get("selector")).get("matchLabels"))
    if not labels or not all(isinstance(value, str) for value in labels.values()):
        raise MalformedObjectError("spec.selector.matchLabels has no labels")
    ports = [_mapping(each).get("number") for each in _list(spec.get("targetPorts"))]
    if not ports or not all(isinstance(port, int) for port in ports):
        raise MalformedObjectError("spec.targetPorts has no numbers")
    return Pool(labels, [port for port in ports if isinstance(port, int)])


def pod_instance(pod: Mapping[str, Any], ports: Sequence[int]) -> PodInstance:
    """Reads a pod: its servers if requests may go there, else none.

    They may while it is Ready, has an address and is not being deleted. A terminating pod still is Ready for
    a while, and a failed one keeps its address.
    """
    metadata, status = _mapping(pod.get("metadata")), _mapping(pod.get("status"))
    ready = any(
        _mapping(each).get("type") == "Ready" and _mapping(each).get("status") == "True"
        for each in _list(status.get("conditions"))
    )
    address = status.get("podIP")
    if not ready or not isinstance(address, str) or metadata.get("deletionTimestamp"):
        return PodInstance("", ())
    name = str(metadata.get("name", ""))
    try:
        endpoints = [Endpoint(name, address_of(address, port), rank) for rank, port in enumerate(ports)]
    except ValueError:
        return PodInstance("", ())
    containers = [str(_mapping(each).get("containerID")) for each in _list(status.get("containerStatuses"))]
    return PodInstance(" ".join((str(metadata.get("uid")), *sorted(containers))), endpoints)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()
