"""Takes keys from the queue and has them reconciled, several at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import Final

from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes.errors import ServerError
from kvtier_operator.reconcile.cache.resources import Key
from kvtier_operator.reconcile.loop.errors import LostWatchError
from kvtier_operator.reconcile.loop.work_queue import WorkQueue
from kvtier_operator.reconcile.observability.metrics import QUEUE_DEPTH, RECONCILE_SECONDS, RECONCILES

_LOG: Final = logging.getLogger(__name__)


class ReconcileResult(StrEnum):
    """Result of one reconciliation; a label of the metric."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    WAITING = "waiting"
    """Something prevents it that can change: tried again, later and later."""
    FAILED = "failed"


@dataclass(slots=True)
class Dispatcher:
    """Reconciles every key that is due, of one namespace after another.

    Attributes:
        reconcile: Reconciles one key.
        report_failure: Called with a key whose reconciliation failed, the error, and failures in a row.
        workers: Reconciliations at a time.
        heartbeat_s: How often it looks at the queue at least.
        polled_at: When it last looked at the queue, in seconds of the loop's clock; None before it runs.
    """

    reconcile: Callable[[Key], Awaitable[ReconcileResult]]
    report_failure: Callable[[Key, Exception, int], Awaitable[None]]
    workers: int = 16
    heartbeat_s: float = 5.0
    queue: WorkQueue[Key] = field(default_factory=lambda: WorkQueue(attrgetter("namespace")))
    polled_at: float | None = None
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _started_at: dict[Key, float] = field(default_factory=dict)

    def add(self, key: Key, delay_s: float = 0.0) -> None:
        """Has a key reconciled after a delay, or earlier if it is due earlier anyway."""
        self.queue.add(key, _now() + delay_s)
        self._woken.set()

    async def run(self) -> None:
        """Reconciles until cancelled."""
        free = asyncio.Semaphore(self.workers)
        async with asyncio.TaskGroup() as group:
            while True:
                await free.acquire()
                key = await self._next()
                group.create_task(self._one(key)).add_done_callback(lambda _: free.release())

    def stuck(self, now: float, longest_s: float) -> list[str]:
        """What has made no progress for so long."""
        stuck = [f"reconciling {key}" for key, since in self._started_at.items() if now - since > longest_s]
        if (
            self.polled_at is None
            or len(self._started_at) >= self.workers
            or now - self.polled_at < longest_s
        ):
            return stuck
        return [*stuck, "the queue"]

    async def _next(self) -> Key:
        while True:
            now = self.polled_at = _now()
            QUEUE_DEPTH.set(len(self.queue))
            key = self.queue.take(now)
            if key is not None:
                return key
            self._woken.clear()
            due = self.queue.next_due()
            wait = self.heartbeat_s if due is None else min(self.heartbeat_s, due - now)
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def _one(self, key: Key) -> None:
        started = self._started_at[key] = _now()
        least_s = 0.0
        try:
            result = await self.reconcile(key)
        except Exception as error:  # noqa: BLE001 - a mistake of ours about one resource must not stop the others
            result = ReconcileResult.FAILED
            least_s = (isinstance(error, ServerError) and error.retry_after_s) or 0.0
            await self._report(key, error)
        finally:
            del self._started_at[key]
        RECONCILES.labels(result.value).inc()
        RECONCILE_SECONDS.observe(_now() - started)
        if result in (ReconcileResult.WAITING, ReconcileResult.FAILED):
            self.queue.failed(key, _now(), least_s=least_s)
        else:
            self.queue.done(key)
        self._woken.set()

    async def _report(self, key: Key, error: Exception) -> None:
        if isinstance(error, LostWatchError):
            pass  # the watch has logged it once for all resources
        elif isinstance(error, KvtierError):
            _LOG.warning("%s: %s; trying again", key, error)
        else:
            _LOG.error("%s: this is a bug in kvtier", key, exc_info=error)
        try:
            await self.report_failure(key, error, self.queue.failures(key) + 1)
        except Exception:  # noqa: BLE001 - as above
            _LOG.exception("%s: reporting it is another", key)


def _now() -> float:
    return asyncio.get_running_loop().time()
