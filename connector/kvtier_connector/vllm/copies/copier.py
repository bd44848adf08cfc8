"""Copies that run beside the engine's step: what a worker needs from a device, and memcpy on a CPU."""

import ctypes
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from kvtier_connector.core.copies.copyplan import CopyPlan, Run
from kvtier_connector.core.machine.numa import use_every_core

_THREADS: Final = 2  # one thread does not reach the memory's bandwidth; more would take cores from the model
_LEAST_FOR_VIEW: Final = 4
"""Copies from which on making two array views is cheaper than one call for each copy."""
_PIECE_BYTES: Final = 16 << 20
"""Threads that take small pieces wait for the interpreter's lock: 2 MiB took a third longer than 8."""


@dataclass(frozen=True, slots=True)
class CopyResult:
    """How a job ended."""

    job_id: int
    seconds: float
    error: Exception | None = None


class Copier(Protocol):
    """Copies between the device and the region."""

    def start(self, job_id: int, plan: CopyPlan, *, to_device: bool) -> None:
        """Begin a job's copies and return at once. An exception here is the job's failure."""

    def take_finished(self) -> list[CopyResult]:
        """Return the jobs that ended since the last call."""

    def wait(self, job_ids: Iterable[int]) -> None:
        """Return when these jobs' copies have ended; `take_finished` still reports them."""

    def pause(self, timeout_s: float) -> None:
        """Return when some job has ended, or after the timeout: for steps with nothing else to do."""

    def close(self) -> None:
        """End all copies and release what they used."""


class MemcpyCopier:
    """Copies memory to memory; the threads share every job piece by piece, as fast as each is given a core.

    NumPy copies a whole run of pages in one call and outside the interpreter's lock, so the engine's step
    goes on meanwhile. One memmove(3) a page took a third longer. vLLM's processes spin while they wait for
    each other: one of two fixed halves would often take twice as long.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "kvtier-copy", use_every_core)
        self._parts: dict[int, list[Future[None]]] = {}
        self._started: dict[int, float] = {}

    def start(self, job_id: int, plan: CopyPlan, *, to_device: bool) -> None:
        """Have the threads work the plan off."""
        self._started[job_id] = time.monotonic()
        pieces = deque(piece for run in plan.runs for piece in run.pieces(_PIECE_BYTES))
        threads = min(_THREADS, -(-plan.total_bytes // _PIECE_BYTES))  # to wake one costs as much as a MiB
        self._parts[job_id] = [self._pool.submit(_copy, pieces, to_device=to_device) for _ in range(threads)]

    def take_finished(self) -> list[CopyResult]:
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

    def _end(self, job_id: int) -> CopyResult:
        errors = [
            error for part in self._parts.pop(job_id) if isinstance(error := part.exception(), Exception)
        ]
        return CopyResult(job_id, time.monotonic() - self._started.pop(job_id), errors[0] if errors else None)


def _copy(pieces: deque[Run], *, to_device: bool) -> None:
    while True:
        try:
            run = pieces.popleft()
        except IndexError:
            return
        copy_run(run, to_device=to_device)


def copy_run(run: Run, *, to_device: bool) -> None:
    """Copy a run in one go; the interpreter's lock is given up meanwhile."""
    if run.count >= _LEAST_FOR_VIEW:
        device = _view(run.device, run.device_step, run)
        region = _view(run.region, run.region_step, run)
        np.copyto(*(device, region) if to_device else (region, device))
        return
    for place in range(run.count):
        device_at = run.device + place * run.device_step
        region_at = run.region + place * run.region_step
        pair = (device_at, region_at) if to_device else (region_at, device_at)
        ctypes.memmove(*pair, run.size_bytes)


def _view(address: int, step: int, run: Run) -> npt.NDArray[np.uint8]:
    """Return the memory of one side of a run as an array of shape (count, size_bytes)."""
    shape, strides = (run.count, run.size_bytes), (step, 1)
    array = {"version": 3, "typestr": "|u1", "data": (address, False), "shape": shape, "strides": strides}
    return np.asarray(_ArrayInterface(array))


@dataclass(frozen=True, slots=True)
class _ArrayInterface:
    """Memory at an address, for NumPy's array interface protocol, version 3."""

    __array_interface__: dict[str, object]
