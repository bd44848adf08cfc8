"""The pods of an InferencePool: watches the pool, and the pods that it selects."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kvtier_common.kubernetes.answers import Document, Place
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.reflector import Reflector
from kvtier_scorer.picker.pods.pod_reflector import USUAL_WAIT_S, pod_reflector, reflector_policy
from kvtier_scorer.picker.pods.pool_objects import MalformedObjectError, Pool, pool_of
from kvtier_scorer.picker.pods.ready_endpoints import ReadyEndpoints
from kvtier_scorer.picker.pods.source import EndpointSink

_LOG: Final = logging.getLogger(__name__)
_POOLS: Final = "/apis/inference.networking.k8s.io/v1/namespaces/{}/inferencepools"


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
