"""A connection to a Mooncake store: a process with Mooncake's client, and memory to pass values through."""

import mmap
import os
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from importlib.util import find_spec
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Final, TypeVar

import numpy as np

from kvtier_connector.config import MOONCAKE_ROOM_BYTES, MOONCAKE_ROOMS
from kvtier_connector.core.remote.mooncake.client import Arguments
from kvtier_connector.core.remote.mooncake.messages import Answer, Failure, Get, Put, Remove, Request, Sizes
from kvtier_connector.core.remote.store import ServerFacts, Value
from kvtier_connector.core.remote.urls import Address
from kvtier_connector.errors import RemoteError, RemoteFullError, RemoteTimeoutError

_T = TypeVar("_T")
_killed = deque[subprocess.Popen[bytes]]()  # those that may still be there
_KEYS_AT_ONCE: Final = 256
"""No more than the socket to the process takes at once, whether that reads or not."""
_REAPED_S: Final = 1.0  # how long a process that is killed may take to be gone
_CLIENT: Final = "kvtier_connector.core.remote.mooncake.client"
_PACKAGES: Final = (
    "mooncake-transfer-engine",
    "mooncake-transfer-engine-cuda13",
    "mooncake-transfer-engine-non-cuda",
)
_LOG_LEVEL: Final = "MC_LOG_LEVEL"
"""Of Mooncake's own log, which goes nowhere unless somebody sets this."""


class MooncakeConnection:
    """A StoreConnection whose client is a process of its own.

    That never has the tier's memory: values are copied out of what both have mapped, which holds two of them,
    so that one is read while another is copied. To give a call up is to kill the process.
    """

    def __init__(
        self, peer: str, process: subprocess.Popen[bytes], pipe: Connection, memory: mmap.mmap
    ) -> None:
        self.peer = peer
        """What errors call the store."""
        self._process = process
        self._pipe = pipe
        self._rooms = [
            np.frombuffer(memory, np.uint8, MOONCAKE_ROOM_BYTES, number * MOONCAKE_ROOM_BYTES)
            for number in range(MOONCAKE_ROOMS)
        ]
        self._free = list(range(MOONCAKE_ROOMS))
        self._begun = deque[tuple[Value, int]]()  # with the rooms that they are read into
        self._waiting = deque[Value]()

    @property
    def is_outdated(self) -> bool:
        """Never: its client follows the store."""
        return False

    def sizes(self, keys: Sequence[bytes], timeout_s: float) -> list[int]:
        """Return the values' lengths."""
        with self._within(timeout_s) as deadline_s:
            self._check_nothing_requested()
            sizes = list[int]()
            for start in range(0, len(keys), _KEYS_AT_ONCE):
                asked = [key.decode() for key in keys[start : start + _KEYS_AT_ONCE]]
                sizes += self._ask(Sizes(asked), list, deadline_s)
            return sizes

    def request(self, value: Value) -> None:
        """Ask for a value."""
        with self._within(0.0):
            _check_size(value)
            self._waiting.append(value)
            self._begin()

    def receive(self, timeout_s: float) -> bool:
        """Receive what was requested first."""
        with self._within(timeout_s) as deadline_s:
            if not self._begun:
                raise ValueError("nothing is requested")
            is_there = self._answered(bool, deadline_s)
            value, room = self._begun.popleft()
            if is_there:
                self._copy(value, room, into_room=False)
            self._free.append(room)
            self._begin()
            return is_there

    def put(self, value: Value, ttl_s: int, timeout_s: float) -> None:
        """Store a value, which stays until the store needs its room: Mooncake lets nothing expire."""
        del ttl_s
        with self._within(timeout_s) as deadline_s:
            self._check_nothing_requested()
            _check_size(value)
            self._copy(value, 0, into_room=True)
            self._ask(Put(value.key.decode(), 0, value.size_bytes), bool, deadline_s)

    def delete(self, keys: Sequence[bytes], timeout_s: float) -> None:
        """Remove values."""
        with self._within(timeout_s) as deadline_s:
            self._check_nothing_requested()
            self._ask(Remove([key.decode() for key in keys]), bool, deadline_s)

    def facts(self, timeout_s: float) -> ServerFacts:
        """Tell the client's version, which is all that it says, once the master has answered."""
        self.sizes([b"kvtier"], timeout_s)
        return ServerFacts(_version(), maxmemory_bytes=None, used_bytes=0, policy="", evicted_keys=0)

    def close(self) -> None:
        """Kill the process; nothing that it does afterwards can reach anybody's memory."""
        self._begun.clear()
        self._waiting.clear()
        self._pipe.close()
        _end(self._process)

    def await_client(self, timeout_s: float) -> None:
        """Wait until the client is ready. Raises RemoteError: it cannot be loaded, or reaches no master."""
        with self._within(timeout_s) as deadline_s:
            self._answered(bool, deadline_s)

    @contextmanager
    def _within(self, timeout_s: float) -> Generator[float]:
        """Yield the deadline; whatever goes wrong ends the process."""
        try:
            self._check_open()
            try:
                yield time.monotonic() + timeout_s
            except TimeoutError as error:
                raise RemoteTimeoutError(f"{self.peer}: no answer within {timeout_s:.3g} s") from error
            except (EOFError, OSError) as error:
                raise RemoteError(f"{self.peer}: Mooncake's client has ended by itself") from error
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        while self._waiting and self._free:
            value, room = self._waiting.popleft(), self._free.pop()
            self._begun.append((value, room))
            self._pipe.send(Get(value.key.decode(), room * MOONCAKE_ROOM_BYTES, value.size_bytes))

    def _ask(self, request: Request, kind: type[_T], deadline_s: float) -> _T:
        self._pipe.send(request)
        return self._answered(kind, deadline_s)

    def _answered(self, kind: type[_T], deadline_s: float) -> _T:
        if not self._pipe.poll(max(0.0, deadline_s - time.monotonic())):
            raise TimeoutError
        answer: Answer = self._pipe.recv()
        if isinstance(answer, Failure):
            error = RemoteFullError if answer.is_full else RemoteError
            raise error(f"{self.peer}: {answer.line}")
        if not isinstance(answer, kind):  # cannot be: both sides are ours
            raise TypeError(f"{type(answer).__name__} is no answer")
        return answer

    def _copy(self, value: Value, room: int, *, into_room: bool) -> None:
        start = 0
        for piece in value.memory:
            if piece.nbytes:
                theirs = np.frombuffer(piece, np.uint8)
                ours = self._rooms[room][start : start + piece.nbytes]
                start += piece.nbytes
                # without the interpreter's lock
                np.copyto(*((ours, theirs) if into_room else (theirs, ours)))

    def _check_open(self) -> None:
        if self._pipe.closed:
            raise RemoteError(f"{self.peer}: the connection is closed")

    def _check_nothing_requested(self) -> None:
        if self._begun:
            raise ValueError("what was requested is not received yet")


def connect(master: Address, timeout_s: float) -> MooncakeConnection:
    """Start a client. Raises RemoteError: its package is missing, or nobody answers in time."""
    if find_spec("mooncake") is None:
        raise RemoteError(
            "the package mooncake is missing; take an image that has it, or pip install "
            "mooncake-transfer-engine"
        )
    deadline_s = time.monotonic() + timeout_s
    own_host = _own_host(master, timeout_s)
    memory_fd = os.memfd_create("kvtier-mooncake")
    pipe, theirs = Pipe()
    try:
        os.ftruncate(memory_fd, MOONCAKE_ROOMS * MOONCAKE_ROOM_BYTES)
        arguments = Arguments(theirs.fileno(), memory_fd, os.getpid(), str(master), own_host)
        log = None if os.environ.get(_LOG_LEVEL) else subprocess.DEVNULL
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-P", "-m", _CLIENT, *arguments.words()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(arguments.asked_fd, memory_fd),
        )
        connection = MooncakeConnection(str(master), process, pipe, mmap.mmap(memory_fd, 0))
    finally:
        theirs.close()
        os.close(memory_fd)
    connection.await_client(max(0.0, deadline_s - time.monotonic()))
    return connection


def _own_host(master: Address, timeout_s: float) -> str:
    """Return by which address of this machine the master is reached, and that it is there at all."""
    try:
        with socket.create_connection((master.host, master.port), timeout_s) as connected:
            host: str = connected.getsockname()[0]
    except TimeoutError as error:
        raise RemoteTimeoutError(f"{master}: no connection within {timeout_s:.3g} s") from error
    except OSError as error:
        raise RemoteError(f"{master}: {error.strerror or error}") from error
    except UnicodeError as error:  # of the IDNA encoding
        raise RemoteError(f"{master}: is no name that a server can have") from error
    return f"[{host}]" if ":" in host else host


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, and look again for those that were not gone yet when they were killed."""
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAPED_S)
    _killed.append(process)
    for _ in range(len(_killed)):
        with suppress(IndexError):  # another thread has it
            killed = _killed.popleft()
            if killed.poll() is None:
                _killed.append(killed)


def _check_size(value: Value) -> None:
    if value.size_bytes > MOONCAKE_ROOM_BYTES:
        raise ValueError(f"a value has {MOONCAKE_ROOM_BYTES} bytes at most")


def _version() -> str:
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            return f"Mooncake, client {metadata.version(package)}"
    return "Mooncake"
