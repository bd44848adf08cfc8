"""Takes keys from a queue and has them reconciled, several at a time."""

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import Final, Generic, TypeVar

from kvtier_common.backoff import Backoff
from kvtier_common.errors import KvtierError, MomentaryError
from kvtier_common.kubernetes.answers import ServerError
from kvtier_operator.reconcile.cache.resources import Key
from kvtier_operator.reconcile.observability import QUEUE_DEPTH, RECONCILE_SECONDS, RECONCILES
from kvtier_operator.reconcile.settings import RETRY

KeyT = TypeVar("KeyT", bound=Hashable)
_SPARE: Final = 64
"""Entries of keys that moved forward: each time one may leave an entry that is due in ten minutes."""
_LOG: Final = logging.getLogger(__name__)


class LostWatchError(MomentaryError):
    """The operator may no longer list what a plan needs; an API server says so too while it starts."""


@dataclass(slots=True)
class WorkQueue(Generic[KeyT]):
    """Keys with the time at which they are due; time is passed in, in seconds of any one clock.

    A key added again keeps its earlier time. One added while it is being worked on comes back after that.
    Of those that are due, each group has its turn, however many keys another one has.
    """

    # group whose turn a key takes; by default all keys are one group
    group_of: Callable[[KeyT], Hashable] = lambda _: None
    retry: Backoff = RETRY  # waits after failures in a row
    _later: dict[KeyT, float] = field(default_factory=dict)
    _heap: list[tuple[float, int, KeyT]] = field(default_factory=list)
    _ready: dict[Hashable, dict[KeyT, float]] = field(default_factory=dict)
    """What is due, by group: the groups in the order of their turns, keys in that of their times."""
    _working: dict[KeyT, float | None] = field(default_factory=dict)
    _failures: dict[KeyT, int] = field(default_factory=dict)
    _added: int = 0

    def __len__(self) -> int:
        return len(self._later) + sum(map(len, self._ready.values()))

    def add(self, key: KeyT, due: float) -> None:
        """Puts a key in, due at a time."""
        if key in self._working:
            again = self._working[key]
            self._working[key] = due if again is None else min(again, due)
            return
        if self._later.get(key, due + 1) <= due or key in self._ready.get(self.group_of(key), ()):
            return
        self._later[key] = due
        self._added += 1
        heapq.heappush(self._heap, (due, self._added, key))
        if len(self._heap) > 2 * len(self._later) + _SPARE:
            self._heap = [entry for entry in self._heap if self._later.get(entry[2]) == entry[0]]
            heapq.heapify(self._heap)

    def take(self, now: float) -> KeyT | None:
        """Takes out the key that has been due for longest, of the group whose turn it is, or None."""
        while (due := self._next_later()) is not None and due <= now:
            _, _, key = heapq.heappop(self._heap)
            self._ready.setdefault(self.group_of(key), {})[key] = self._later.pop(key)
        if not self._ready:
            return None
        group = next(iter(self._ready))
        keys = self._ready.pop(group)
        key = next(iter(keys))
        del keys[key]
        if keys:
            self._ready[group] = keys  # behind the others
        self._working[key] = None
        return key

    def next_due(self) -> float | None:
        """When the next key is due."""
        for keys in self._ready.values():
            return next(iter(keys.values()))
        return self._next_later()

    def failures(self, key: KeyT) -> int:
        """Failures in a row of the work on a key."""
        return self._failures.get(key, 0)

    def succeed(self, key: KeyT) -> None:
        """The work on a key ended well."""
        self._failures.pop(key, None)
        self._finish(key)

    def fail(self, key: KeyT, now: float, *, least_s: float = 0.0) -> None:
        """The work on a key failed: it comes back, later with every failure in a row."""
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        self._finish(key, now + max(least_s, self.retry.delay_s(failures)))

    def _finish(self, key: KeyT, again_at: float | None = None) -> None:
        added = self._working.pop(key, None)
        times = [time for time in (added, again_at) if time is not None]
        if times:
            self.add(key, min(times))

    def _next_later(self) -> float | None:
        """When the next key that was not yet due is; drops earlier entries of keys that moved forward."""
        while self._heap and self._later.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None


class ReconcileResult(StrEnum):
    """Result of one reconciliation; a label of the metric."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    WAITING = "waiting"
    """Something prevents it that can change: tried again, later and later."""
    FAILED = "failed"


@dataclass(slots=True)
class Dispatcher:
    """Reconciles every key that is due, of one namespace after another."""

    reconcile: Callable[[Key], Awaitable[ReconcileResult]]  # reconciles one key
    # called with a key whose reconciliation failed, the error, and failures in a row
    report_failure: Callable[[Key, Exception, int], Awaitable[None]]
    workers: int = 16  # reconciliations at a time
    heartbeat_s: float = 5.0  # how often it looks at the queue at least
    queue: WorkQueue[Key] = field(default_factory=lambda: WorkQueue(attrgetter("namespace")))
    # when it last looked at the queue, in seconds of the loop's clock; None before it runs
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

    def find_stuck(self, now: float, longest_s: float) -> list[str]:
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
            self.queue.fail(key, _now(), least_s=least_s)
        else:
            self.queue.succeed(key)
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
