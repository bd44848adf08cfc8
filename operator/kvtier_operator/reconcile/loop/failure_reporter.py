"""Reports failed reconciliations in the status and by an Event: the API server may refuse either."""

import logging
from dataclasses import dataclass
from typing import Final

import orjson

from kvtier_common.errors import KvtierError, MomentaryError
from kvtier_common.kubernetes.errors import NotFoundError
from kvtier_operator.reconcile.api_server.kinds import KVCACHETIER
from kvtier_operator.reconcile.apply.events import event
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.cache.resources import CachedResource, Key, ResourceCache
from kvtier_operator.reconcile.loop.clock import Clock
from kvtier_operator.reconcile.status.round_failed import round_failed, with_ready

_LOG: Final = logging.getLogger(__name__)
_UNREPORTED_FAILURES: Final = 5
"""So many momentary errors in a row are not reported: six seconds, with the queue's back-off."""


@dataclass(frozen=True, slots=True)
class FailureReporter:
    """Reports a reconciliation that failed: in condition Ready, and by an Event.

    Attributes:
        writer: Writes to the API server.
        resources: The KVCacheTiers as last seen.
        clock: The time of day.
    """

    writer: Writer
    resources: ResourceCache
    clock: Clock

    async def report(self, key: Key, error: Exception, failures: int) -> None:
        """Reports what stopped a reconciliation, once for as long as it is the same.

        Args:
            key: The resource that was reconciled.
            error: What stopped it.
            failures: Failed reconciliations of the resource in a row, this one included.
        """
        resource = self.resources.get(key)
        momentary = isinstance(error, MomentaryError)
        # such errors differ in a port or a time from try to try
        if resource is None or (
            momentary and (failures <= _UNREPORTED_FAILURES or resource.state.reported_failure)
        ):
            return
        ready = round_failed(error)
        previous = orjson.loads(resource.status)
        status = with_ready(previous, ready, resource.generation, self.clock.now())
        if status != previous:
            await self._write_status(key, resource, status)
        if resource.state.reported_failure != ready.message:
            resource.state.reported_failure = ready.message
            [condition] = [each for each in status["conditions"] if each["type"] == ready.type]
            await self._write_event(key, resource, condition)

    async def _write_status(self, key: Key, resource: CachedResource, status: dict[str, object]) -> None:
        try:
            self.resources.written(await self.writer.status(*key, resource.uid, status))
        except NotFoundError:
            self.resources.delete(key, resource.uid)
        except KvtierError as error:
            _LOG.warning("%s: nor could the status be written: %s", key, error)

    async def _write_event(self, key: Key, resource: CachedResource, condition: dict[str, object]) -> None:
        metadata = {**key._asdict(), "uid": resource.uid, "resourceVersion": str(resource.version)}
        try:
            await self.writer.event(key.namespace, event(condition, metadata, self.clock.now()))
        except KvtierError as error:
            _LOG.warning("%s: an Event about the %s was not taken: %s", key, KVCACHETIER.kind, error)
