"""A proxy on loopback that does to a server's answers what networks do."""

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final, Self

_CHUNK_BYTES: Final = 64 << 10

Fault = Callable[[bytes], Iterable[bytes]]
"""A piece of the server's answers, to what the client gets of it; an OSError ends the connection."""


class Proxy:
    """Takes connections to another port; `fault` is done to what answers come while it is set."""

    def __init__(self, host: str, port: int) -> None:
        self.fault: Fault = lambda answer: [answer]
        self._target = host, port
        self._listener = socket.create_server((host, 0))
        self._sockets = list[socket.socket]()
        self._threads = list[threading.Thread]()
        self._ended = threading.Event()
        self._start(self._take)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def wait(self, seconds: float) -> None:
        """Wait, for a fault; not beyond the proxy's end."""
        self._ended.wait(seconds)

    def hold(self) -> None:
        """Wait for the proxy's end."""
        self._ended.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join()
        for each in (self._listener, *self._sockets):
            each.close()

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _take(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._sockets += client, server
                self._start(lambda client=client, server=server: _pump(_receive(client), server))  # type: ignore[misc]
                self._start(lambda client=client, server=server: self._answer(server, client))  # type: ignore[misc]

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        _pump(self._faulty(_receive(server)), client)

    def _faulty(self, answers: Iterator[bytes]) -> Iterator[bytes]:
        for answer in answers:
            yield from self.fault(answer)


def _receive(one: socket.socket) -> Iterator[bytes]:
    with suppress(OSError):
        while received := one.recv(_CHUNK_BYTES):
            yield received


def _pump(chunks: Iterable[bytes], to: socket.socket) -> None:
    with suppress(OSError):
        for chunk in chunks:
            to.sendall(chunk)
    with suppress(OSError):
        to.shutdown(socket.SHUT_RDWR)
