"""Reads and writes through io_uring: one system call hands over many, one thread waits for all of them."""

import ctypes
import os
import threading
import time
from array import array
from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np

from kvtier_connector.core.disk.io.engine import JOINED_BYTES, BlockIO, Completion, EngineUnavailableError
from kvtier_connector.core.disk.io.progress import ended_short, parts_after, unusable
from kvtier_connector.core.disk.io.ring import Ring

_NO_BYTES: Final = ctypes.c_char * 0
_COUNTER_BYTES: Final = 8
"""What is read of an eventfd (eventfd(2))."""
_abandoned: Final = list[object]()
"""What the kernel still had when its engine was closed: it may yet write to that memory, so it is kept."""
_WAKE: Final = 0
"""What the completion of a wake is told by; transfers have the numbers from 1."""


class _InKernel:
    """A transfer in the kernel's hands."""

    __slots__ = ("done_bytes", "handed_s", "io", "kept", "size_bytes", "vectors")

    def __init__(self, io: BlockIO, handed_s: float) -> None:
        self.io = io
        self.handed_s = handed_s
        self.done_bytes = 0
        self.kept, self.vectors, self.size_bytes = _located(io.memory, write=io.write)


class UringEngine:
    """An IOEngine on a ring of its own. Completions are seen, and timed, when `take_completions` looks.

    Args:
        depth: how many transfers the kernel has at a time.

    Raises:
        EngineUnavailableError: the kernel, or what is installed, does not allow it.
    """

    name = "io_uring"
    joined_bytes = JOINED_BYTES

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._ring: Ring | None = Ring(depth + 1)
        try:
            self._ring.wait(0.0)
            self._wake_descriptor = os.eventfd(0, os.EFD_CLOEXEC)
        except OSError as error:
            self._ring.close()
            raise EngineUnavailableError(str(error)) from error
        self._waiting = deque[BlockIO]()
        self._in_kernel = dict[int, _InKernel]()
        self._last = _WAKE
        self._ended = list[Completion]()
        self._wake_lock = threading.Lock()  # a closed descriptor may already be another file's
        self._counter = array("B", bytes(_COUNTER_BYTES))
        self._counter_vector = array("Q", (self._counter.buffer_info()[0], _COUNTER_BYTES))
        self._listening = self._woken = False

    def submit(self, ios: Sequence[BlockIO]) -> None:
        """Take transfers on and hand over those for which there is room."""
        ring = self._open_ring()
        self._waiting.extend(ios)
        if self._fill(ring):
            ring.submit()

    def take_completions(self, timeout_s: float) -> list[Completion]:
        """Return what has ended, and hand over what has waited for that."""
        ring = self._open_ring()
        until = time.monotonic() + timeout_s
        if not self._listening:  # by the thread that waits: the kernel completes in the thread that asked
            self._listening = True
            ring.prepare(
                _WAKE,
                write=False,
                descriptor=self._wake_descriptor,
                offset=0,
                vectors=self._counter_vector,
            )
        handed = self._reap(ring)
        while not (self._ended or self._woken):
            left_s = until - time.monotonic()
            ring.wait(max(0.0, left_s))
            handed = self._reap(ring)
            if left_s <= 0:
                break
        if self._fill(ring) or handed:
            ring.submit()
        self._woken = False
        ended, self._ended = self._ended, []
        return ended

    def wake(self) -> None:
        """Make `take_completions` return."""
        with self._wake_lock:
            if self._wake_descriptor >= 0:
                os.eventfd_write(self._wake_descriptor, 1)

    def overdue(self, limit_s: float) -> list[BlockIO]:
        """Return what was handed over longer ago than this."""
        before = time.monotonic() - limit_s
        return [transfer.io for transfer in self._in_kernel.values() if transfer.handed_s < before]

    @property
    def in_flight(self) -> int:
        """Number of transfers taken on and not yet reported."""
        return len(self._waiting) + len(self._in_kernel) + len(self._ended)

    def close(self) -> None:
        """Give the ring back; the memory of what it still has is kept for good."""
        if self._ring is None:
            return
        with self._wake_lock:
            os.close(self._wake_descriptor)
            self._wake_descriptor = -1
        self._ring.close()
        self._ring = None
        self._waiting.clear()
        _abandoned.append((self._counter, self._in_kernel))

    def _open_ring(self) -> Ring:
        if self._ring is None:
            raise ValueError("the engine is closed")
        return self._ring

    def _fill(self, ring: Ring) -> bool:
        """Prepare what waits, as far as there is room; tells whether there was any."""
        now = time.monotonic()
        prepared = False
        while self._waiting and len(self._in_kernel) < self.depth:
            io = self._waiting.popleft()
            try:
                transfer = _InKernel(io, now)
            except (TypeError, ValueError, BufferError) as error:
                self._ended.append(Completion(io, 0.0, unusable(io, error)))
                continue
            self._last += 1
            self._in_kernel[self._last] = transfer
            _prepare(ring, self._last, transfer)
            prepared = True
        return prepared

    def _reap(self, ring: Ring) -> bool:
        """Take completions; tells whether some of them were not whole and go on."""
        handed = False
        now = time.monotonic()
        for number, result in ring.take():
            if number == _WAKE:
                self._listening, self._woken = False, True
                continue
            transfer = self._in_kernel[number]
            error = None
            if result < 0:
                error = OSError(-result, os.strerror(-result))
            else:
                transfer.done_bytes += result
                if transfer.done_bytes < transfer.size_bytes:
                    if result:
                        _go_on(ring, number, transfer)
                        handed = True
                        continue
                    error = ended_short(transfer.io, transfer.done_bytes)
            del self._in_kernel[number]
            self._ended.append(Completion(transfer.io, now - transfer.handed_s, error))
        return handed


def _go_on(ring: Ring, number: int, transfer: _InKernel) -> None:
    """Ask for what is left of a transfer."""
    left = tuple(parts_after(transfer.io, transfer.done_bytes))
    transfer.kept, transfer.vectors, _ = _located(left, write=transfer.io.write)
    _prepare(ring, number, transfer)


def _prepare(ring: Ring, number: int, transfer: _InKernel) -> None:
    io = transfer.io
    ring.prepare(
        number,
        write=io.write,
        descriptor=io.descriptor,
        offset=io.offset + transfer.done_bytes,
        vectors=transfer.vectors,
    )


def _located(parts: Sequence[memoryview], *, write: bool) -> tuple[list[object], "array[int]", int]:
    """Return what keeps the memory from being given back, address and length of each part, and their sum.

    Raises:
        TypeError: memory to read into is read-only.
        ValueError: memory has been released.
        BufferError: memory is not in one piece.
    """
    kept: list[object] = []  # not list[object](): for every transfer, that takes half a microsecond more
    vectors, total_bytes = array("Q"), 0
    for part in parts:
        size_bytes = part.nbytes
        if write and part.readonly:
            seen = np.frombuffer(part, np.uint8)
            kept.append(seen)
            vectors.append(seen.ctypes.data)
        else:
            held = _NO_BYTES.from_buffer(part)
            kept.append(held)
            vectors.append(ctypes.addressof(held))
        vectors.append(size_bytes)
        total_bytes += size_bytes
    return kept, vectors, total_bytes
