"""The pods of a cluster: those of an InferencePool, or those that have some labels."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kvtier_common.backoff import Backoff
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.documents import Document, Place, place_of
from kvtier_common.kubernetes.reflector import Reflector, ReflectorPolicy
from kvtier_scorer.picker.pods.source import Endpoint, EndpointSink, PodInstance, ReadyEndpoints, address_of

_PODS: Final = "/api/v1/namespaces/{}/pods"
_OBJECT_BYTES: Final = 4 << 20
"""etcd keeps 1.5 MiB of an object, which as JSON can be more."""
_LIST_AFTER: Final = 5
"""Failures in a row from which the resource version itself is in doubt."""
USUAL_WAIT_S: Final = Backoff(first_s=0.1, longest_s=15.0).delay_s
_LOG: Final = logging.getLogger(__name__)
_POOLS: Final = "/apis/inference.networking.k8s.io/v1/namespaces/{}/inferencepools"


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


def reflector_policy(wait_s: Callable[[int], float] = USUAL_WAIT_S) -> ReflectorPolicy:
    """What is done when something is wrong: pods are served as they last were, for as long as it takes.

    Args:
        wait_s: Seconds to wait after so many failures in a row.
    """
    return ReflectorPolicy(
        wait_s=wait_s,
        relists=lambda _, failures: failures >= _LIST_AFTER,
        ends_on=(),
        object_bytes=_OBJECT_BYTES,
        leaves_out=True,
        meanwhile="the pods stay as they were, trying again",
    )


def pod_reflector(  # noqa: PLR0913, PLR0917 - one argument a part
    api: Api,
    namespace: str,
    pool: Pool,
    endpoints: ReadyEndpoints,
    listed: Callable[[], None],
    wait_s: Callable[[int], float] = USUAL_WAIT_S,
) -> Reflector:
    """A reflector of the pods.

    Args:
        api: The API server.
        namespace: Of the pods.
        pool: Their labels and ports.
        endpoints: Is told of each.
        listed: Is called when all of them have been told.
        wait_s: Seconds to wait after so many failures in a row.
    """
    path, sink = _PODS.format(namespace), _PodSink(pool, endpoints, listed)
    return Reflector(api, path, path, {"labelSelector": pool.selector}, sink, reflector_policy(wait_s))


@dataclass(slots=True)
class _PodSink:
    """Hands pods on to the ready endpoints."""

    pool: Pool
    endpoints: ReadyEndpoints
    listed: Callable[[], None]

    def upsert(self, document: Document) -> None:
        self.endpoints.upsert(place_of(document)[1], pod_instance(document, self.pool.ports))

    def delete(self, document: Document) -> None:
        self.endpoints.delete(place_of(document)[1])

    def replace(self, places: set[Place], version: int) -> None:
        del version
        self.endpoints.replace({name for _, name in places})
        self.listed()


@dataclass(slots=True)
class InferencePoolPods:
    """The ready pods of one InferencePool.

    A pool that changes its selector or ports keeps the pods that it had until those it has now are known. A
    pool that is deleted has none.

    Attributes:
        api: The API server; closed when this ends.
        namespace: Of the pool and its pods.
        name: Of the pool.
        wait_s: Seconds to wait after so many failures in a row.
    """

    api: Api
    namespace: str
    name: str
    wait_s: Callable[[int], float] = USUAL_WAIT_S
    _pools: "asyncio.Queue[Pool | None]" = field(default_factory=asyncio.Queue)
    _synced: bool = False

    @property
    def synced(self) -> bool:
        """Whether the pool and all its pods have been listed once."""
        return self._synced

    async def run(self, sink: EndpointSink) -> None:
        """Tells of pods until cancelled."""
        path = _POOLS.format(self.namespace)
        query = {"fieldSelector": f"metadata.name={self.name}"}
        sink_of_pools = _PoolSink(self.name, self._pools.put_nowait)
        pools = Reflector(self.api, path, path, query, sink_of_pools, reflector_policy(self.wait_s))
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(pools.run())
                tasks.create_task(self._follow(ReadyEndpoints(sink), tasks))
        finally:
            await self.api.close()

    async def _follow(self, endpoints: ReadyEndpoints, tasks: asyncio.TaskGroup) -> None:
        """Watches the pods of the pool as it is, again from the beginning each time it changes."""
        pods: asyncio.Task[None] | None = None
        while True:
            pool = await self._pools.get()
            if pods is not None:
                pods.cancel()
                await asyncio.wait([pods])
            if pool is None:
                endpoints.replace(frozenset())
                pods = None
            else:
                pods = tasks.create_task(self._reflect(pool, endpoints))

    async def _reflect(self, pool: Pool, endpoints: ReadyEndpoints) -> None:
        await pod_reflector(self.api, self.namespace, pool, endpoints, self._listed, self.wait_s).run()

    def _listed(self) -> None:
        self._synced = True


@dataclass(slots=True)
class _PoolSink:
    """Says when the pool is another one."""

    name: str
    changed: Callable[[Pool | None], None]
    pool: Pool | None = None

    def upsert(self, document: Document) -> None:
        try:
            pool = pool_of(document)
        except MalformedObjectError as error:
            _LOG.error("InferencePool %s: %s; it stays as it was", self.name, error)
            return
        if pool != self.pool:
            self._set(pool)

    def delete(self, document: Document) -> None:
        del document
        if self.pool is not None:
            _LOG.warning("InferencePool %s is gone, and its pods with it", self.name)
            self._set(None)

    def replace(self, places: set[Place], version: int) -> None:
        del version
        names = {name for _, name in places}
        if not names and self.pool is None:
            _LOG.warning("there is no InferencePool %s; waiting for it", self.name)
        elif self.name not in names:
            self.delete({})

    def _set(self, pool: Pool | None) -> None:
        self.pool = pool
        self.changed(pool)


@dataclass(slots=True)
class SelectedPods:
    """The ready pods with these labels.

    Attributes:
        api: The API server; closed when this ends.
        namespace: Of the pods.
        labels: What they have; at least one.
        ports: What each of them serves on.
        wait_s: Seconds to wait after so many failures in a row.
    """

    api: Api
    namespace: str
    labels: Mapping[str, str]
    ports: Sequence[int]
    wait_s: Callable[[int], float] = USUAL_WAIT_S
    _synced: bool = False

    @property
    def synced(self) -> bool:
        """Whether all pods have been listed once."""
        return self._synced

    async def run(self, sink: EndpointSink) -> None:
        """Tells of pods until cancelled."""
        pool = Pool(self.labels, self.ports)
        endpoints = ReadyEndpoints(sink)
        try:
            await pod_reflector(self.api, self.namespace, pool, endpoints, self._listed, self.wait_s).run()
        finally:
            await self.api.close()

    def _listed(self) -> None:
        self._synced = True
