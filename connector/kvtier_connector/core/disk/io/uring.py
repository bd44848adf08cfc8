"""Reads and writes through io_uring(7): one system call hands over many, one thread waits for all of them.

The C library is that of the PyPI package `liburing`, whose own Python functions keep Python's lock while they
are in the kernel, also while they wait. Through ctypes, what enters the kernel lets go of the lock, and
what only touches the ring's memory, less than a microsecond each, keeps it.
"""

import ctypes
import errno
import importlib
import os
import threading
import time
from array import array
from collections import deque
from collections.abc import Sequence
from ctypes import c_int, c_int32, c_longlong, c_uint, c_uint32, c_uint64, c_void_p
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from kvtier_connector.core.disk.io.engine import (
    JOINED_BYTES,
    BlockIO,
    Completion,
    EngineUnavailableError,
    ended_short,
    parts_after,
    unusable,
)

_RING_BYTES: Final = 1024  # `struct io_uring` takes 216 in liburing 2.15, and may grow
_SUBMIT_ALL: Final = 1 << 7
"""IORING_SETUP_SUBMIT_ALL: a transfer that is refused does not hold up those behind it. Linux 5.18.

With IORING_SETUP_COOP_TASKRUN or IORING_SETUP_DEFER_TASKRUN blocks of 128 and 512 KiB took no less time.
"""
_TRY_LATER: Final = frozenset({errno.EAGAIN, errno.EBUSY, errno.EINTR})
"""The kernel is short of memory or of space (io_uring_enter(2)); what it did not take stays in the ring."""

_RETRY_S: Final = 0.01  # how soon it is asked again
_PREPARE: Final = (c_void_p, c_int, c_void_p, c_uint, c_uint64)
_ENTERING: Final[dict[str, tuple[Any, ...]]] = {
    "queue_init": (c_int, c_uint, c_void_p, c_uint),
    "queue_exit": (None, c_void_p),
    "submit": (c_int, c_void_p),
    "submit_and_wait_timeout": (c_int, c_void_p, c_void_p, c_uint, c_void_p, c_void_p),
    "wait_cqes": (c_int, c_void_p, c_void_p, c_uint, c_void_p, c_void_p),
}
"""Result and arguments of what enters the kernel."""
_IN_MEMORY: Final[dict[str, tuple[Any, ...]]] = {
    "get_sqe": (c_void_p, c_void_p),
    "prep_readv": (None, *_PREPARE),
    "prep_writev": (None, *_PREPARE),
    "sqe_set_data64": (None, c_void_p, c_uint64),
    "sq_ready": (c_uint, c_void_p),
    "cq_ready": (c_uint, c_void_p),
    "peek_batch_cqe": (c_uint, c_void_p, c_void_p, c_uint),
    "cq_advance": (None, c_void_p, c_uint),
}
"""Of what touches the ring's memory only."""
_NO_BYTES: Final = ctypes.c_char * 0
_COUNTER_BYTES: Final = 8  # what is read of an eventfd (eventfd(2))
_abandoned: Final = list[object]()
"""What the kernel still had when its engine was closed: it may yet write to that memory, so it is kept."""
_WAKE: Final = 0  # what the completion of a wake is told by; transfers have the numbers from 1


class _Completion(ctypes.Structure):
    """`struct io_uring_cqe`, of the kernel's interface."""

    _fields_ = (("user_data", c_uint64), ("result", c_int32), ("flags", c_uint32))


class _Timespec(ctypes.Structure):
    """`struct __kernel_timespec`, of the kernel's interface."""

    _fields_ = (("seconds", c_longlong), ("nanoseconds", c_longlong))


@cache
def _library() -> SimpleNamespace:
    """Find the C functions in the package's shared object: each `io_uring_<name>` of liburing's manual pages.

    Raises EngineUnavailableError: the package is not installed, or does not show them.
    """
    functions = {}
    try:
        path = importlib.import_module("liburing.liburing").__file__
        for kind, signatures in ((ctypes.CDLL, _ENTERING), (ctypes.PyDLL, _IN_MEMORY)):
            library = kind(path)
            for name, (result, *arguments) in signatures.items():
                function = functions[name] = library[f"io_uring_{name}"]
                function.restype, function.argtypes = result, arguments
    except (ImportError, OSError, AttributeError) as error:
        raise EngineUnavailableError(f"the liburing package: {error}") from error
    return SimpleNamespace(**functions)


class Ring:
    """A ring for `entries` transfers at a time. Not thread-safe, but any one thread may use it.

    Raises EngineUnavailableError: the kernel is too old, or its settings or a seccomp filter forbid it.
    """

    def __init__(self, entries: int) -> None:
        self._call = _library()
        self._entries = entries
        self._memory = ctypes.create_string_buffer(_RING_BYTES)
        self._ring = ctypes.addressof(self._memory)
        self._found = (ctypes.POINTER(_Completion) * entries)()
        self._first_found = c_void_p()
        self._first = ctypes.addressof(self._first_found)
        self._timespec = _Timespec()
        status = self._call.queue_init(entries, self._ring, _SUBMIT_ALL)
        if status < 0:
            raise EngineUnavailableError(_refusal(-status))

    def prepare(
        self, user_data: int, *, write: bool, descriptor: int, offset: int, vectors: "array[int]"
    ) -> None:
        """Put one transfer into the ring; the kernel has it with the next `submit` or `wait`.

        Its completion is told by `user_data`. The vectors are address and length of each part of the memory,
        one after the other (`struct iovec`). They must stay until they have been submitted; the memory, until
        the completion. Raises ValueError: more transfers are under way than the ring has entries.
        """
        entry = self._call.get_sqe(self._ring)
        if entry is None:
            raise ValueError(f"the ring has only {self._entries} entries")
        address, length = vectors.buffer_info()
        prepare = self._call.prep_writev if write else self._call.prep_readv
        prepare(entry, descriptor, address, length // 2, offset)
        self._call.sqe_set_data64(entry, user_data)

    def submit(self) -> None:
        """Hand over what was prepared; what the kernel does not take now goes with the next call."""
        self._check_status(self._call.submit(self._ring))

    def wait(self, timeout_s: float) -> None:
        """Hand over what was prepared; return with the first completion, after the timeout or earlier."""
        if self._call.sq_ready(self._ring):
            status = self._call.submit_and_wait_timeout(
                self._ring, self._first, 1, self._until(timeout_s), None
            )
            if status not in {-errno.EAGAIN, -errno.EBUSY}:
                self._check_status(status)
                return
            timeout_s = min(timeout_s, _RETRY_S)
        self._check_status(self._call.wait_cqes(self._ring, self._first, 1, self._until(timeout_s), None))

    def take(self) -> Sequence[tuple[int, int]]:
        """Return (user data, result) of what has completed; a result below zero is an errno's negative."""
        count = self._call.peek_batch_cqe(self._ring, self._found, self._entries)
        if not count:
            return ()
        taken = []
        for pointer in self._found[:count]:
            completion = pointer.contents
            taken.append((completion.user_data, completion.result))
        self._call.cq_advance(self._ring, count)
        return taken

    def close(self) -> None:
        """Give the ring back; what the kernel still has is cancelled, or ends unseen."""
        self._call.queue_exit(self._ring)

    def _until(self, timeout_s: float) -> int:
        whole = int(timeout_s)
        self._timespec.seconds, self._timespec.nanoseconds = whole, int((timeout_s - whole) * 1e9)
        return ctypes.addressof(self._timespec)

    @staticmethod
    def _check_status(status: int) -> None:
        if status < 0 and -status not in _TRY_LATER and -status != errno.ETIME:
            raise OSError(-status, f"io_uring_enter: {os.strerror(-status)}")


def _refusal(number: int) -> str:
    why = {
        errno.ENOSYS: "this kernel has none, or a seccomp filter hides it",
        errno.EPERM: "forbidden by kernel.io_uring_disabled or by a seccomp filter",
        errno.EACCES: "forbidden by a security module",
        errno.ENOMEM: "not enough lockable memory (RLIMIT_MEMLOCK)",
        errno.EINVAL: "this kernel is older than 5.18",
    }.get(number, "no ring can be made")
    return f"{why} ({os.strerror(number)})"


class _InKernel:
    """A transfer in the kernel's hands."""

    __slots__ = ("done_bytes", "handed_s", "io", "kept", "size_bytes", "vectors")

    def __init__(self, io: BlockIO, handed_s: float) -> None:
        self.io = io
        self.handed_s = handed_s
        self.done_bytes = 0
        self.kept, self.vectors, self.size_bytes = _locate(io.memory, write=io.write)


class UringEngine:
    """An IOEngine on a ring of its own. Completions are seen, and timed, when `take_completions` looks.

    Raises EngineUnavailableError: the kernel, or what is installed, does not allow it.
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
        """Take transfers on and hand over those that the ring has entries for."""
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
                _WAKE, write=False, descriptor=self._wake_descriptor, offset=0, vectors=self._counter_vector
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
        """Prepare what waits, as far as the ring has entries; tells whether there was any."""
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
    transfer.kept, transfer.vectors, _ = _locate(left, write=transfer.io.write)
    _prepare(ring, number, transfer)


def _prepare(ring: Ring, number: int, transfer: _InKernel) -> None:
    io, offset = transfer.io, transfer.io.offset + transfer.done_bytes
    ring.prepare(number, write=io.write, descriptor=io.descriptor, offset=offset, vectors=transfer.vectors)


def _locate(parts: Sequence[memoryview], *, write: bool) -> tuple[list[object], "array[int]", int]:
    """Return what keeps the memory from being given back, address and length of each part, and their sum.

    Raises TypeError: memory to read into is read-only; ValueError: memory has been released; BufferError:
    memory is not in one piece.
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
