"""Takes keys from the queue and has them worked on, several at a time."""

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
from kvtier_operator.reconcile.errors import UnseenError
from kvtier_operator.reconcile.loop.work_queue import WorkQueue
from kvtier_operator.reconcile.metrics import QUEUE_DEPTH, RECONCILE_SECONDS, RECONCILES

_LOG: Final = logging.getLogger(__name__)
_HEARTBEAT_S: Final = 5.0


class ReconcileResult(StrEnum):
    """What came of one reconciliation; a label of the metric."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    WAITING = "waiting"
    """Something is in the way that can go away: tried again, later and later."""
    FAILED = "failed"


@dataclass(slots=True)
class Dispatcher:
    """Runs `work` for every key that is due, of one namespace after another.

    Attributes:
        work: Reconciles one key.
        tell: Tells of a round that came to no end: its key, what stopped it, how many in a row did.
        workers: How many at a time.
        beat_at: When it last looked at the queue, by the loop's clock; None while it has not begun.
    """

    work: Callable[[Key], Awaitable[ReconcileResult]]
    tell: Callable[[Key, Exception, int], Awaitable[None]]
    workers: int = 16
    queue: WorkQueue[Key] = field(default_factory=lambda: WorkQueue(attrgetter("namespace")))
    beat_at: float | None = None
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _since: dict[Key, float] = field(default_factory=dict)

    def add(self, key: Key, delay_s: float = 0.0) -> None:
        """Has a key worked on after a delay, or earlier if it is due earlier anyway."""
        self.queue.add(key, _now() + delay_s)
        self._woken.set()

    async def run(self) -> None:
        """Works until cancelled."""
        free = asyncio.Semaphore(self.workers)
        async with asyncio.TaskGroup() as group:
            while True:
                await free.acquire()
                key = await self._next()
                group.create_task(self._one(key)).add_done_callback(lambda _: free.release())

    def stuck(self, now: float, longest_s: float) -> list[str]:
        """What did not get on for so long."""
        stuck = [f"reconciling {key}" for key, since in self._since.items() if now - since > longest_s]
        if self.beat_at is None or len(self._since) >= self.workers or now - self.beat_at < longest_s:
            return stuck
        return [*stuck, "the queue"]

    async def _next(self) -> Key:
        while True:
            now = self.beat_at = _now()
            QUEUE_DEPTH.set(len(self.queue))
            key = self.queue.take(now)
            if key is not None:
                return key
            self._woken.clear()
            due = self.queue.next_due()
            wait = _HEARTBEAT_S if due is None else min(_HEARTBEAT_S, due - now)
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def _one(self, key: Key) -> None:
        started = self._since[key] = _now()
        least_s = 0.0
        try:
            result = await self.work(key)
        except Exception as error:  # noqa: BLE001 - a mistake of ours about one resource must not stop the others
            result = ReconcileResult.FAILED
            least_s = (isinstance(error, ServerError) and error.retry_after_s) or 0.0
            await self._tell(key, error)
        finally:
            del self._since[key]
        RECONCILES.labels(result.value).inc()
        RECONCILE_SECONDS.observe(_now() - started)
        if result in (ReconcileResult.WAITING, ReconcileResult.FAILED):
            self.queue.failed(key, _now(), least_s=least_s)
        else:
            self.queue.done(key)
        self._woken.set()

    async def _tell(self, key: Key, error: Exception) -> None:
        if isinstance(error, UnseenError):
            pass  # the watch has said it once for all resources
        elif isinstance(error, KvtierError):
            _LOG.warning("%s: %s; trying again", key, error)
        else:
            _LOG.error("%s: this is a bug in kvtier", key, exc_info=error)
        try:
            await self.tell(key, error, self.queue.failures(key) + 1)
        except Exception:  # noqa: BLE001 - as above
            _LOG.exception("%s: telling of it is another", key)


def _now() -> float:
    return asyncio.get_running_loop().time()
