"""The pods of a cluster: those of an InferencePool, or those that have some labels."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.backoff import Backoff
from kvtier_common.kubernetes.answers import Document, Place, place_of
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.reflector import Reflector, ReflectorPolicy
from kvtier_scorer.picker.pods.source import Endpoint, EndpointSink, PodInstance, ReadyEndpoints, address_of

_PODS: Final = "/api/v1/namespaces/{}/pods"
_OBJECT_BYTES: Final = 4 << 20  # etcd keeps 1.5 MiB of an object, which as JSON can be more
_LIST_AFTER: Final = 5  # failures in a row from which the resource version itself is in doubt
USUAL_WAIT_S: Final = Backoff(first_s=0.1, longest_s=15.0).delay_s
_LOG: Final = logging.getLogger(__name__)
_POOLS: Final = "/apis/inference.networking.k8s.io/v1/namespaces/{}/inferencepools"


class MalformedObjectError(ValueError):
    """An object is not what its kind says; the message says where."""


@dataclass(frozen=True, slots=True)
class Pool:
    """An InferencePool (inference.networking.k8s.io/v1): its pods' labels, and the ports they serve on."""

    labels: Mapping[str, str]
    ports: Sequence[int]

    @property
    def selector(self) -> str:
        """The labels as the labelSelector of a request."""
        return ",".join(f"{name}={value}" for name, value in sorted(self.labels.items()))


def pool_of(document: Mapping[str, Any]) -> Pool:
    """Reads an InferencePool.

    Raises MalformedObjectError: it has no selector or no port: an empty selector would take every pod there
    is.
    """
    spec = _mapping(document.get("spec"))
    labels = _mapping(_mapping(spec.get("selector")).get("matchLabels"))
    if not labels or not all(isinstance(value, str) for value in labels.values()):
        raise MalformedObjectError("spec.selector.matchLabels has no labels")
    ports = [_mapping(port).get("number") for port in _list(spec.get("targetPorts"))]
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
        _mapping(condition).get("type") == "Ready" and _mapping(condition).get("status") == "True"
        for condition in _list(status.get("conditions"))
    )
    address = status.get("podIP")
    if not ready or not isinstance(address, str) or metadata.get("deletionTimestamp"):
        return PodInstance("", ())
    name = str(metadata.get("name", ""))
    try:
        endpoints = [Endpoint(name, address_of(address, port), rank) for rank, port in enumerate(ports)]
    except ValueError:
        return PodInstance("", ())
    statuses = _list(status.get("containerStatuses"))
    containers = sorted(str(_mapping(container).get("containerID")) for container in statuses)
    return PodInstance(" ".join((str(metadata.get("uid")), *containers)), endpoints)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def reflector_policy(wait_s: Callable[[int], float] = USUAL_WAIT_S) -> ReflectorPolicy:
    """What is done when something is wrong: pods are served as they last were, for as long as it takes."""
    return ReflectorPolicy(
        wait_s=wait_s,
        relists=lambda _, failures: failures >= _LIST_AFTER,
        ends_on=(),
        object_bytes=_OBJECT_BYTES,
        leaves_out=True,
        meanwhile="the pods stay as they were, trying again",
    )


@dataclass(slots=True)
class _PodSink:
    """Hands pods on to the ready endpoints."""

    pool: Pool
    endpoints: ReadyEndpoints
    on_list: Callable[[], None]

    def upsert(self, document: Document) -> None:
        self.endpoints.upsert(place_of(document)[1], pod_instance(document, self.pool.ports))

    def delete(self, document: Document) -> None:
        self.endpoints.delete(place_of(document)[1])

    def replace(self, places: set[Place], version: int) -> None:
        del version
        self.endpoints.replace({name for _, name in places})
        self.on_list()


class _ClusterPods:
    """What the pods of a cluster have alike; the API is closed when they end."""

    def __init__(self, api: Api, namespace: str, wait_s: Callable[[int], float]) -> None:
        self.synced = False  # whether all pods have been listed once
        self._api = api
        self._namespace = namespace
        self._wait_s = wait_s

    async def _reflect(self, pool: Pool, endpoints: ReadyEndpoints) -> None:
        """Follows the pods of a pool."""
        path, sink = _PODS.format(self._namespace), _PodSink(pool, endpoints, self._on_list)
        query, policy = {"labelSelector": pool.selector}, reflector_policy(self._wait_s)
        await Reflector(self._api, path, path, query, sink, policy).run()

    def _on_list(self) -> None:
        self.synced = True


class SelectedPods(_ClusterPods):
    """The ready pods with some labels, at least one: no InferencePool is needed, nor its CRD."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        labels: Mapping[str, str],
        ports: Sequence[int],
        wait_s: Callable[[int], float] = USUAL_WAIT_S,
    ) -> None:
        super().__init__(api, namespace, wait_s)
        self._pool = Pool(labels, ports)

    async def run(self, sink: EndpointSink) -> None:
        """Tells of pods until cancelled."""
        try:
            await self._reflect(self._pool, ReadyEndpoints(sink))
        finally:
            await self._api.close()


class InferencePoolPods(_ClusterPods):
    """The ready pods of one InferencePool, of which it is told as a sink.

    A pool that changes its selector or ports keeps the pods that it had until those it has now are known. A
    pool that is deleted has none.
    """

    def __init__(
        self, api: Api, namespace: str, name: str, wait_s: Callable[[int], float] = USUAL_WAIT_S
    ) -> None:
        super().__init__(api, namespace, wait_s)
        self._name = name
        self._pool: Pool | None = None
        self._changes: asyncio.Queue[Pool | None] = asyncio.Queue()

    async def run(self, sink: EndpointSink) -> None:
        """Tells of pods until cancelled."""
        path, policy = _POOLS.format(self._namespace), reflector_policy(self._wait_s)
        query = {"fieldSelector": f"metadata.name={self._name}"}
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(Reflector(self._api, path, path, query, self, policy).run())
                tasks.create_task(self._follow(ReadyEndpoints(sink), tasks))
        finally:
            await self._api.close()

    def upsert(self, document: Document) -> None:
        """The pool is there, new or changed or as before."""
        try:
            pool = pool_of(document)
        except MalformedObjectError as error:
            _LOG.error("InferencePool %s: %s; it stays as it was", self._name, error)
            return
        if pool != self._pool:
            self._change(pool)

    def delete(self, document: Document) -> None:
        """The pool was deleted."""
        del document
        if self._pool is not None:
            _LOG.warning("InferencePool %s is gone, and its pods with it", self._name)
            self._change(None)

    def replace(self, places: set[Place], version: int) -> None:
        """There are these pools and no others."""
        del version
        names = {name for _, name in places}
        if not names and self._pool is None:
            _LOG.warning("there is no InferencePool %s; waiting for it", self._name)
        elif self._name not in names:
            self.delete({})

    def _change(self, pool: Pool | None) -> None:
        self._pool = pool
        self._changes.put_nowait(pool)

    async def _follow(self, endpoints: ReadyEndpoints, tasks: asyncio.TaskGroup) -> None:
        """Watches the pods of the pool as it is, again from the beginning each time it changes."""
        pods: asyncio.Task[None] | None = None
        while True:
            pool = await self._changes.get()
            if pods is not None:
                pods.cancel()
                await asyncio.wait([pods])
            if pool is None:
                endpoints.replace(frozenset())
                pods = None
            else:
                pods = tasks.create_task(self._reflect(pool, endpoints))
