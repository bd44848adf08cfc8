"""What it takes to move a prompt's blocks between a store and memory: by plain sockets, and by the tier."""

import mmap
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Final

from kvtier_connector.core.behind.messages import Ended, Order
from kvtier_connector.core.disk.files.fingerprint import fingerprint
from kvtier_connector.core.remote.resp import replies
from kvtier_connector.core.remote.resp.connect import Access, connect
from kvtier_connector.core.remote.store import Value
from kvtier_connector.core.remote.transfers import RemoteThreads, Up
from kvtier_connector.core.remote.values import BlockLayout
from kvtier_connector.errors import ConnectorError

GIB: Final = 1 << 30
_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes moved one way."""

    size_bytes: int
    seconds: float
    cpu_s: float  # of a core, of this process alone

    @property
    def cpu_s_per_gib(self) -> float:
        """Seconds of a core that a GiB takes."""
        return self.cpu_s * GIB / self.size_bytes


class Wire:
    """Blocks in memory and in a store, moved by as many connections as an engine has.

    Memory is touched before, and connections are there: what is measured is the moving alone.
    """

    def __init__(self, access: Access, block_bytes: int, blocks: int, connections: int) -> None:
        self._access = access
        self._layout = BlockLayout("bench-wire", lambda: fingerprint({"bench": "wire"}), block_bytes)
        self._keys = [number.to_bytes(8, "big") for number in range(blocks)]
        region = memoryview(mmap.mmap(-1, block_bytes * blocks))
        for place in range(0, len(region), mmap.PAGESIZE):
            region[place : place + 8] = place.to_bytes(8, "little")
        self._memory = [region[number * block_bytes :][:block_bytes] for number in range(blocks)]
        self._size_bytes = len(region)
        self._threads = RemoteThreads(
            lambda: connect(access),
            self._layout,
            connections=connections,
            ttl_s=0,
            connect_timeout_s=_TIMEOUT_S,
        )
        self._sockets = [self._connected() for _ in range(connections)]
        self._pool = ThreadPoolExecutor(connections)
        self._outbox = self._threads.outbox

    def begin(self) -> None:
        """Wait until the store serves, and give it all blocks. Raises ConnectorError: it does not."""
        until_s = time.monotonic() + _TIMEOUT_S
        while not any(isinstance(event, Up) for event in self._outbox.take()):
            if not self._outbox.wait(until_s - time.monotonic()):
                raise ConnectorError("the store does not serve its own benchmark")
        self.write()

    def write(self) -> Moved:
        """Write all blocks anew by the tier's threads."""
        with closing(connect(self._access)) as connection:
            keys = [value.key for values in self._values() for value in values]
            connection.delete(keys, _TIMEOUT_S)
        return self._measure(lambda: self._order(write=True))

    def read(self) -> Moved:
        """Read all blocks by the tier's threads."""
        return self._measure(lambda: self._order(write=False))

    def read_plainly(self) -> Moved:
        """Read the same values by nothing but the calls that move bytes: nothing is checked."""
        values = [value for block in self._values() for value in block]
        shares = [values[number :: len(self._sockets)] for number in range(len(self._sockets))]
        return self._measure(lambda: list(self._pool.map(_get_all, self._sockets, shares)))

    def close(self) -> None:
        """End threads and connections."""
        self._threads.close()
        self._pool.shutdown()
        for connected in self._sockets:
            connected.close()

    def _values(self) -> list[list[Value]]:
        return [
            self._layout.values(key, (memory,)) for key, memory in zip(self._keys, self._memory, strict=True)
        ]

    def _order(self, *, write: bool) -> None:
        orders = [
            Order(write, 0, key, -1, slot, (memory,))
            for slot, (key, memory) in enumerate(zip(self._keys, self._memory, strict=True))
        ]
        self._threads.order(orders)
        left, until_s = len(orders), time.monotonic() + _TIMEOUT_S
        while left:
            self._outbox.wait(until_s - time.monotonic())
            ended = [event for event in self._outbox.take() if isinstance(event, Ended)]
            for event in ended:
                if event.error is not None:
                    raise ConnectorError(f"the store fails under its own benchmark: {event.error}")
            left -= len(ended)
            if time.monotonic() > until_s:
                raise ConnectorError(f"the store moved too little within {_TIMEOUT_S:.0f} s")

    def _measure(self, deed: Callable[[], object]) -> Moved:
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        deed()
        return Moved(self._size_bytes, time.perf_counter() - start_s, time.process_time() - start_cpu_s)

    def _connected(self) -> socket.socket:
        address = self._access.url.addresses[0]
        connected = socket.create_connection((address.host, address.port), _TIMEOUT_S)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected


@contextmanager
def wire_to(access: Access, block_bytes: int, blocks: int, connections: int) -> Iterator[Wire]:
    """Make a wire whose store serves, with all blocks in it."""
    with ExitStack() as stack:
        wire = Wire(access, block_bytes, blocks, connections)
        stack.callback(wire.close)
        wire.begin()
        yield wire


def _get_all(connected: socket.socket, values: Sequence[Value]) -> None:
    """Get values one after another; the next is asked for before the one ahead has come."""
    asked = (replies.get_command(value.key) for value in values)
    connected.sendall(next(asked, b""))
    for value in values:
        connected.sendall(next(asked, b""))
        _receive(connected, memoryview(bytearray(len(replies.size_line(value.size_bytes)))))
        for memory in value.memory:
            _receive(connected, memory)
        _receive(connected, memoryview(bytearray(len(replies.CRLF))))


def _receive(connected: socket.socket, memory: memoryview) -> None:
    while memory:
        size_bytes = connected.recv_into(memory)
        if not size_bytes:
            raise ConnectorError("the store ends connections under its own benchmark")
        memory = memory[size_bytes:]
