"""A process that has Mooncake's client: `python -m kvtier_connector.core.remote.mooncake.client`.

It serves one connection of one engine, which ends it when a call takes too long: Mooncake's calls cannot be
ended otherwise, and while it looks for its master it holds the interpreter's lock, for 90 s (version 0.3.13).
Whoever reaches its port reads and writes the memory that it was given: that is a buffer, not the tier's.
"""

import ctypes
import mmap
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from typing_extensions import Self

from kvtier_connector.core.remote.mooncake.messages import Answer, Failure, Get, Put, Remove, Request, Sizes

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
# Mooncake's ErrorCode (mooncake-store/include/types.h)
_NO_ROOM: Final = -200
_SHORTER: Final = -600  # what was given for a value is less than it has
_NOT_READY, _NOT_FOUND, _LEASE_EXPIRED, _REPLICA_GONE = -703, -704, -707, -712
_GONE: Final = frozenset({_SHORTER, _NOT_READY, _NOT_FOUND, _LEASE_EXPIRED, _REPLICA_GONE})
_NAMES: Final = {
    _NO_ROOM: "no room, and nothing that may be evicted: do store processes run?",
    -800: "a store process does not answer",
    -900: "the master does not answer",
    -901: "the master does not answer in time",
}


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the process is started with, in this order."""

    asked_fd: int  # socket of the connection
    memory_fd: int  # memory that both have mapped
    parent: int  # id of the process that it ends with
    master: str  # HOST:PORT
    own_host: str  # the machine's address, as the master's machine sees it

    @classmethod
    def parse(cls, said: Sequence[str]) -> Self:
        """Read the command line."""
        asked_fd, memory_fd, parent, master, own_host = said
        return cls(int(asked_fd), int(memory_fd), int(parent), master, own_host)

    def words(self) -> list[str]:
        """Return the command line."""
        return [str(self.asked_fd), str(self.memory_fd), str(self.parent), self.master, self.own_host]


class _Refused(Exception):  # noqa: N818 - carries an answer
    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class _Client:
    """Mooncake's client, which lends the store no memory."""

    def __init__(self, arguments: Arguments, memory: mmap.mmap) -> None:
        from mooncake.store import MooncakeDistributedStore  # noqa: PLC0415 - its libraries may be missing

        self._store: Any = MooncakeDistributedStore()
        _check(
            "setup",
            self._store.setup(
                {
                    "local_hostname": arguments.own_host,
                    "metadata_server": "P2PHANDSHAKE",
                    "global_segment_size": "0",
                    "local_buffer_size": "0",  # values lie in our memory alone
                    # Mooncake's own variables (mooncake/mooncake_config.py)
                    "protocol": os.environ.get("MOONCAKE_PROTOCOL", "tcp"),
                    "rdma_devices": os.environ.get("MOONCAKE_DEVICE", ""),
                    "master_server_addr": arguments.master,
                }
            ),
        )
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        _check("register_buffer", self._store.register_buffer(self._address, len(memory)))

    def answer(self, request: Request) -> Answer:
        """Do what is asked. Raises _Refused: the store does not let it, or is not there."""
        match request:
            case Sizes(keys):
                return self._sizes(keys)
            case Get(key, start, size_bytes):
                [got] = self._store.batch_get_into([key], [self._address + start], [size_bytes])
                return got == size_bytes if got > 0 or got in _GONE else _check("get", got)
            case Put(key, start, size_bytes):
                # what is there already would stay: Mooncake writes a key once
                if self._are_there([key]) == [True]:
                    self._remove([key])
                [put] = self._store.batch_put_from([key], [self._address + start], [size_bytes])
                return _check("put", put)
            case Remove(keys):
                return self._remove(keys)

    def _sizes(self, keys: Sequence[str]) -> list[int]:
        """Return lengths: of those that are there, the descriptions are asked for in a second call.

        One call for all would do, but Mooncake's log has a line for each that is absent.
        """
        are_there = self._are_there(keys)
        wanted = [key for key, is_there in zip(keys, are_there, strict=True) if is_there]
        described = self._store.batch_get_replica_desc(wanted) if wanted else {}
        return [_size_bytes(described.get(key, ())) for key in keys]

    def _are_there(self, keys: Sequence[str]) -> list[bool]:
        codes = self._store.batch_is_exist(list(keys))
        return [_check("exists", code) and code == 1 for code in codes]

    def _remove(self, keys: Sequence[str]) -> bool:
        for code in self._store.batch_remove(list(keys), force=True):  # although they were read just now
            if code != _NOT_FOUND:
                _check("remove", code)
        return True


def _size_bytes(replicas: Sequence[Any]) -> int:
    """Return the length of what has these replicas; 0 without one in memory."""
    for replica in replicas:
        if replica.is_memory_replica():
            return int(replica.get_memory_descriptor().buffer_descriptor.size)
    return 0


def _check(deed: str, code: int) -> bool:
    """Return True for a code of success. Raises _Refused: it is another."""
    if code < 0:
        why = _NAMES.get(code, "with MC_LOG_LEVEL=INFO in the environment its client's log says why")
        raise _Refused(Failure(f"{deed} failed ({code}): {why}", is_full=code == _NO_ROOM))
    return True


def main(arguments: Arguments) -> None:
    """Serve requests until the other side is gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != arguments.parent:  # it has ended meanwhile
        return
    asked = Connection(arguments.asked_fd)
    memory = mmap.mmap(arguments.memory_fd, 0)
    try:
        client = _Client(arguments, memory)
    except ImportError as error:
        asked.send(Failure(f"Mooncake's client cannot be loaded: {error}"))
        return
    except _Refused as refused:
        asked.send(refused.failure)
        return
    ready: Answer = True
    asked.send(ready)
    while True:
        try:
            request = asked.recv()
        except (EOFError, ConnectionError):
            return
        try:
            asked.send(client.answer(request))
        except _Refused as refused:
            asked.send(refused.failure)


if __name__ == "__main__":
    main(Arguments.parse(sys.argv[1:]))
    os._exit(0)  # Mooncake's own end takes a second
