"""The pods of an InferencePool: watches the pool, and the pods that it selects."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kvtier_scorer.picker.pods.api_server import ApiServer
from kvtier_scorer.picker.pods.documents import MalformedObjectError, Pool, pod_instance, pool_of
from kvtier_scorer.picker.pods.ready_endpoints import ReadyEndpoints
from kvtier_scorer.picker.pods.reflector import Document, Reflector, backoff_s, name_of
from kvtier_scorer.picker.pods.source import PodSink

_LOG: Final = logging.getLogger(__name__)
_POOLS: Final = "/apis/inference.networking.k8s.io/v1/namespaces/{}/inferencepools"
_PODS: Final = "/api/v1/namespaces/{}/pods"


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

    api: ApiServer
    namespace: str
    name: str
    wait_s: Callable[[int], float] = backoff_s
    _pools: "asyncio.Queue[Pool | None]" = field(default_factory=asyncio.Queue)
    _synced: bool = False

    @property
    def synced(self) -> bool:
        """Whether the pool and all its pods have been listed once."""
        return self._synced

    async def run(self, sink: PodSink) -> None:
        """Tells of pods until cancelled."""
        pools = Reflector(
            self.api,
            _POOLS.format(self.namespace),
            {"fieldSelector": f"metadata.name={self.name}"},
            _PoolSink(self.name, self._pools.put_nowait),
            self.wait_s,
        )
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
                endpoints.only(frozenset())
                pods = None
            else:
                pods = tasks.create_task(self._reflect(pool, endpoints))

    async def _reflect(self, pool: Pool, endpoints: ReadyEndpoints) -> None:
        path, query = _PODS.format(self.namespace), {"labelSelector": pool.selector}
        await Reflector(self.api, path, query, _PodSink(pool, endpoints, self._listed), self.wait_s).run()

    def _listed(self) -> None:
        self._synced = True


@dataclass(slots=True)
class _PoolSink:
    """Says when the pool is another one."""

    name: str
    changed: Callable[[Pool | None], None]
    pool: Pool | None = None

    def seen(self, document: Document) -> None:
        try:
            pool = pool_of(document)
        except MalformedObjectError as error:
            _LOG.error("InferencePool %s: %s; it stays as it was", self.name, error)
            return
        if pool != self.pool:
            self._set(pool)

    def gone(self, document: Document) -> None:
        del document
        if self.pool is not None:
            _LOG.warning("InferencePool %s is gone, and its pods with it", self.name)
            self._set(None)

    def only(self, names: frozenset[str]) -> None:
        if not names and self.pool is None:
            _LOG.warning("there is no InferencePool %s; waiting for it", self.name)
        elif self.name not in names:
            self.gone({})

    def _set(self, pool: Pool | None) -> None:
        self.pool = pool
        self.changed(pool)


@dataclass(slots=True)
class _PodSink:
    """Hands pods on to the roster."""

    pool: Pool
    endpoints: ReadyEndpoints
    listed: Callable[[], None]

    def seen(self, document: Document) -> None:
        self.endpoints.seen(name_of(document), pod_instance(document, self.pool.ports))

    def gone(self, document: Document) -> None:
        self.endpoints.gone(name_of(document))

    def only(self, names: frozenset[str]) -> None:
        self.endpoints.only(names)
        self.listed()
