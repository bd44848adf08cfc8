"""Load on a gateway: so many connections, each sending its next request when its answer has come.

One thread and plain sockets: an event loop of Python's own takes several times as long a request as Envoy.
"""

import random
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tests.bench.picker.through_envoy.shapes import Template

_OK: Final = b"HTTP/1.1 200"
_LENGTH: Final = b"content-length: "
_END: Final = b"\r\n\r\n"
_RECEIVE_BYTES: Final = 1 << 16
# A whole request in one call where the machine allows it: less is only slower.
_SEND_BUFFER_BYTES: Final = 1 << 19
_STUCK_S: Final = 30.0


class LoadError(Exception):
    """The gateway did not answer as one does; the message has what it said."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a stretch of load came to.

    Attributes:
        latencies_s: From each request's first byte to its answer's last, in the order of the answers.
        elapsed_s: How long it lasted.
        refused: Answers that were not 200, which `latencies_s` does not have.
    """

    latencies_s: NDArray[np.float64]
    elapsed_s: float
    refused: int

    @property
    def rps(self) -> float:
        """Answered requests a second."""
        return len(self.latencies_s) / self.elapsed_s

    def quantile_s(self, share: float) -> float:
        """The latency that a share of requests stays under; NaN without any."""
        return float(np.quantile(self.latencies_s, share)) if len(self.latencies_s) else float("nan")


@dataclass(slots=True)
class _Connection:
    """A connection and the request that is on its way over it."""

    socket: socket.socket
    unsent: list[memoryview] = field(default_factory=list)
    received: bytes = b""
    began_s: float = 0.0

    def send(self) -> bool:
        """Sends what can be sent now; whether that was all."""
        while self.unsent:
            try:
                sent = self.socket.sendmsg(self.unsent)
            except BlockingIOError:
                return False
            while self.unsent and sent >= len(self.unsent[0]):
                sent -= len(self.unsent.pop(0))
            if sent:
                self.unsent[0] = self.unsent[0][sent:]
        return True


class Generator:
    """Connections to one gateway that stay open between stretches of load.

    A request's question has a number that no request of this process has had before.
    """

    def __init__(
        self, address: tuple[str, int], templates: Sequence[Template], connections: int, seed: int
    ) -> None:
        self._templates = templates
        self._numbers = random.Random(seed)  # noqa: S311 - not for secrets
        self._sent = seed * 10**9
        self._poll = select.epoll()
        self._connections: dict[int, _Connection] = {}
        for _ in range(connections):
            opened = socket.create_connection(address, timeout=_STUCK_S)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
            opened.setblocking(False)  # noqa: FBT003 - the library's signature
            self._connections[opened.fileno()] = _Connection(opened)
            self._poll.register(opened, select.EPOLLIN)

    def close(self) -> None:
        """Closes the connections."""
        self._poll.close()
        for connection in self._connections.values():
            connection.socket.close()

    def run(self, duration_s: float) -> Load:
        """Sends for so long, and then waits for the answers that are still to come.

        Raises:
            LoadError: A connection was closed, an answer is not HTTP with a length, or none comes any more.
        """
        latencies: list[float] = []
        refused = 0
        began = time.perf_counter()
        until = began + duration_s
        for each in self._connections.values():
            self._start(each)
        under_way = len(self._connections)
        while under_way:
            events = self._poll.poll(_STUCK_S)
            if not events:
                raise LoadError(f"no answer in {_STUCK_S:g} s, with {under_way} requests under way")
            for number, event in events:
                connection = self._connections[number]
                if event & select.EPOLLOUT and connection.send():
                    self._poll.modify(number, select.EPOLLIN)
                if not event & ~select.EPOLLOUT:
                    continue
                status = _answered(connection)
                if status is None:
                    continue
                now = time.perf_counter()
                if status:
                    latencies.append(now - connection.began_s)
                else:
                    refused += 1
                if now < until:
                    self._start(connection)
                else:
                    under_way -= 1
        return Load(np.array(latencies), time.perf_counter() - began, refused)

    def _start(self, connection: _Connection) -> None:
        template = self._templates[self._numbers.randrange(len(self._templates))]
        self._sent += 1
        connection.unsent = [memoryview(part) for part in template.parts(self._sent)]
        connection.began_s = time.perf_counter()
        if not connection.send():
            self._poll.modify(connection.socket, select.EPOLLIN | select.EPOLLOUT)


def _answered(connection: _Connection) -> bool | None:
    """Whether a complete answer is a good one; None while it is not complete.

    Raises:
        LoadError: See `Generator.run`.
    """
    try:
        more = connection.socket.recv(_RECEIVE_BYTES)
    except BlockingIOError:
        return None
    except OSError as error:
        raise LoadError(f"the gateway ended a connection: {error}") from None
    if not more:
        raise LoadError(f"the gateway closed a connection after {connection.received[:200]!r}")
    received = connection.received + more
    end = received.find(_END)
    if end < 0:
        connection.received = received
        return None
    at = received.find(_LENGTH, 0, end + 2)
    if at < 0:
        raise LoadError(f"an answer without content-length: {received[:end]!r}")
    length = int(received[at + len(_LENGTH) : received.index(b"\r\n", at)])
    if len(received) < end + len(_END) + length:
        connection.received = received
        return None
    connection.received = b""
    if connection.unsent:
        raise LoadError(f"an answer before its request's end: {received[:200]!r}")
    return received.startswith(_OK)
