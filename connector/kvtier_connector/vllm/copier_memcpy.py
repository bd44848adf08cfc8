"""Copies where the device's KV cache is ordinary memory: memcpy on threads of its own.

The copies run outside the interpreter's lock (ctypes releases it), so the engine's step goes on meanwhile.
"""

import ctypes
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Final

from kvtier_connector.core.copyplan import CopyPlan, coalesce
from kvtier_connector.vllm.copier import Outcome

_THREADS: Final = 2
"""Measured on a 2-core VM: one thread does not reach the memory's bandwidth, two nearly do."""


class MemcpyCopier:
    """Copies with memmove(3); a job's copies are dealt out to all threads."""

    def __init__(self, threads: int = _THREADS) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, "kvtier-copy")
        self._parts: dict[int, list[Future[None]]] = {}
        self._started: dict[int, float] = {}

    def start(self, job_id: int, plan: CopyPlan, *, to_device: bool) -> None:
        """Deal the job's copies out to the threads."""
        plan = coalesce(plan)
        target, source = (plan.device, plan.region) if to_device else (plan.region, plan.device)
        self._started[job_id] = time.monotonic()
        self._parts[job_id] = [
            self._pool.submit(_copy, target[part].tolist(), source[part].tolist(), plan.sizes[part].tolist())
            for part in _even_parts(len(plan.sizes), self._threads)
        ]

    def finished(self) -> list[Outcome]:
        """Return the jobs that ended since the last call."""
        ended = [job_id for job_id, parts in self._parts.items() if all(part.done() for part in parts)]
        return [self._end(job_id) for job_id in ended]

    def wait(self, job_ids: Iterable[int]) -> None:
        """Return when these jobs' copies have ended."""
        wait([part for job_id in job_ids for part in self._parts.get(job_id, ())])

    def pause(self, timeout_s: float) -> None:
        """Return when some job has ended, or after the timeout."""
        for parts in self._parts.values():
            wait(parts, timeout_s)
            return

    def close(self) -> None:
        """Drop what has not begun and wait for the rest: the memory is unmapped after this."""
        self._pool.shutdown(cancel_futures=True)
        self._parts.clear()
        self._started.clear()

    def _end(self, job_id: int) -> Outcome:
        errors = [
            error for part in self._parts.pop(job_id) if isinstance(error := part.exception(), Exception)
        ]
        return Outcome(job_id, time.monotonic() - self._started.pop(job_id), errors[0] if errors else None)


def _even_parts(count: int, parts: int) -> list[slice]:
    bounds = [count * part // parts for part in range(parts + 1)]
    return [slice(low, high) for low, high in pairwise(bounds) if low < high]


def _copy(targets: list[int], sources: list[int], sizes: list[int]) -> None:
    for target, source, size in zip(targets, sources, sizes, strict=True):
        ctypes.memmove(target, source, size)
