"""A slow way to a store: `python -m` of this file relays connections at so many bytes a second, all together.

It stands for a network or a server that is slower than the engine computes, and runs on any machine, without
rights on its interfaces.
"""

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Final

from kvtier_connector.bench.engine import environment, line_process, serve
from kvtier_connector.bench.vllm_arguments import NO_SERVE_OPTIONS

_HOST: Final = "127.0.0.1"
_PIECE_BYTES: Final = 16 << 10
_PATIENCE_S: Final = 5.0


@contextmanager
def slow_way(port: int, bytes_per_s: float, log: Path) -> Iterator[int]:
    """Run a relay to a port of this machine; gives the port on which it listens."""
    with line_process(
        __name__,
        str(port),
        str(bytes_per_s),
        name="the slow way to the store",
        log=log,
        environment=environment({}, NO_SERVE_OPTIONS, ""),
        patience_s=_PATIENCE_S,
    ) as process:
        yield int(process.answer())


class Pace:
    """Bytes a second that several threads share."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._lock = threading.Lock()
        self._free_at_s = 0.0

    def take(self, size_bytes: int) -> None:
        """Return when so many bytes have passed, behind those of others."""
        with self._lock:
            self._free_at_s = max(self._free_at_s, time.monotonic()) + size_bytes / self._bytes_per_s
            free_at_s = self._free_at_s
        time.sleep(max(0.0, free_at_s - time.monotonic()))


class Relay(ThreadingTCPServer):
    """Takes connections to another port of this machine."""

    daemon_threads = True

    def __init__(self, port: int, pace: Pace) -> None:
        super().__init__((_HOST, 0), _Connection)
        self.target = _HOST, port
        self.pace = pace


class _Connection(BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        """Relay both ways until either side ends."""
        with socket.create_connection(self.server.target) as store:
            ask = threading.Thread(target=self._pump, args=(self.request, store), daemon=True)
            ask.start()
            self._pump(store, self.request)
            ask.join()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE_BYTES):
                self.server.pace.take(len(piece))
                target.sendall(piece)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def main(arguments: list[str]) -> None:
    """Relay until the standard input ends."""
    with Relay(int(arguments[1]), Pace(float(arguments[2]))) as relay:
        threading.Thread(target=relay.serve_forever, daemon=True).start()
        serve(int(arguments[0]), lambda question: question, ready=relay.server_address[1])
        relay.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:])
