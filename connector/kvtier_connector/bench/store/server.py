"""A store for a benchmark alone: on loopback, with what one process of it can take."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_common.store_program import STORE_PROGRAMS, server_command, store_program
from kvtier_connector.bench.engine import line_process, serve
from kvtier_connector.core.remote.resp.connect import Access, connect_one
from kvtier_connector.core.remote.resp.url import RespUrl
from kvtier_connector.core.remote.urls import Address
from kvtier_connector.errors import ConnectorError, RemoteError

_HOST: Final = "127.0.0.1"
_READY_S: Final = 60.0
_LOOK_S: Final = 0.1
_ASK_S: Final = 60.0
_PATIENCE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class BenchStore:
    """A server that runs."""

    port: int

    @property
    def access(self) -> Access:
        """How the tier's client reaches it."""
        return Access(RespUrl((self.address,), tls=False, database=0), timeout_s=_ASK_S)

    @property
    def address(self) -> Address:
        """Where it listens."""
        return Address(_HOST, self.port)

    @property
    def values(self) -> int:
        """Number of values that it holds."""
        with closing(connect_one(self.access, self.address)) as connection:
            count = connection.ask(b"DBSIZE", timeout_s=_ASK_S)
        return count if isinstance(count, int) else 0

    def wait_until_written(self, before: int, quiet_s: float, timeout_s: float) -> None:
        """Wait until it has more values than before and gets no more.

        Raises ConnectorError: it got none.
        """
        until_s = time.monotonic() + timeout_s
        values, since_s = before, time.monotonic()
        while values == before or time.monotonic() - since_s < quiet_s:
            if values == before and time.monotonic() > until_s:
                raise ConnectorError(f"the store was given nothing within {timeout_s:.0f} s")
            time.sleep(_LOOK_S)
            now = self.values
            if now != values:
                values, since_s = now, time.monotonic()


@contextmanager
def bench_store(log: Path, memory_bytes: int) -> Iterator[BenchStore]:
    """Run a server that holds so much and keeps nothing. Raises ConnectorError: there is none, or it ends."""
    program = store_program()
    if program is None:
        raise ConnectorError(
            f"no {' or '.join(STORE_PROGRAMS)} is installed, which remote measures with: install "
            "kvtier[engine-cpu], or Debian's package redis-server"
        )
    with socket.create_server((_HOST, 0)) as listener:
        port = listener.getsockname()[1]
    with line_process(
        __name__,
        program,
        str(port),
        str(memory_bytes),
        name="the store",
        log=log,
        environment=os.environ,
        patience_s=_PATIENCE_S,
    ) as process:
        process.answer()
        yield BenchStore(port)


def main(arguments: Sequence[str]) -> None:
    """Run a server until the standard input ends: also when who started this process was killed."""
    pipe, program, port, memory_bytes = arguments
    folder = Path(tempfile.gettempdir())
    command = server_command(
        program, host=_HOST, port=int(port), folder=folder, memory_bytes=int(memory_bytes)
    )
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - a list
    try:
        _wait_until_ready(BenchStore(int(port)), server)
        serve(int(pipe), lambda question: question)
    finally:
        server.kill()
        server.wait()


def _wait_until_ready(store: BenchStore, server: "subprocess.Popen[bytes]") -> None:
    until_s = time.monotonic() + _READY_S
    while True:
        try:
            connect_one(store.access, store.address).close()
        except RemoteError:
            if server.poll() is not None or time.monotonic() > until_s:
                raise
            time.sleep(_LOOK_S)
        else:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
