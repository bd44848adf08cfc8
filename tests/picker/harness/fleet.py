"""Many stand-in engines on one port and as many addresses of loopback, as pods of one InferencePool are.

python -m tests.picker.harness.fleet --count 1000     prints one line of JSON when all of them listen
"""

import asyncio
import contextlib
import json
import random
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

import click
from tests.picker.harness.engine import Engine, EngineProtocol

_TRIES: Final = 20
_BACKLOG: Final = 512
# The first octets of a run's own network in 127.0.0.0/8: two runs at a time seldom meet.
_FIRST_NETWORK, _LAST_NETWORK = 10, 250


class Fleet:
    """Running engines: in a thread of their own, so that tests may block.

    Attributes:
        engines: By address, in the order of their addresses.
        port: The one port of all of them.
    """

    def __init__(self, engines: Mapping[str, Engine], port: int, loop: asyncio.AbstractEventLoop) -> None:
        self.engines = engines
        self.port = port
        self._loop = loop
        self._listening: dict[str, socket.socket] = {}
        self._accepted: set[asyncio.Task[object]] = set()
        self._connections: set[_Tracked] = set()

    @property
    def addresses(self) -> list[str]:
        """`ip:port` of each engine."""
        return list(self.engines)

    @property
    def ips(self) -> list[str]:
        """IP address of each engine."""
        return [engine.rpartition(":")[0] for engine in self.engines]

    @property
    def pods(self) -> list[tuple[str, int]]:
        """Address and port of each engine."""
        return [(address, self.port) for address in self.ips]

    @property
    def served(self) -> dict[str, int]:
        """Requests that each engine has answered, of those that have any."""
        return {engine.address: engine.served for engine in self.engines.values() if engine.served}

    def stop(self, address: str) -> None:
        """Ends an engine as a killed pod ends: its connections are reset."""
        asyncio.run_coroutine_threadsafe(self._stop(address), self._loop).result()

    def start(self, address: str, listening: socket.socket | None = None) -> None:
        """Starts an engine, or starts it again."""
        listening = listening or _listening(address.rpartition(":")[0], self.port)
        asyncio.run_coroutine_threadsafe(self._start(address, listening), self._loop).result()

    async def _start(self, address: str, listening: socket.socket) -> None:
        self._listening[address] = listening
        self._loop.add_reader(listening, self._accept, self.engines[address], listening)

    def _accept(self, engine: Engine, listening: socket.socket) -> None:
        """By itself: an asyncio.Server loses a connection that comes while it closes (Python before 3.13)."""
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        connection.setblocking(False)  # noqa: FBT003 - the library's signature
        accepted = self._loop.create_task(
            self._loop.connect_accepted_socket(lambda: _Tracked(engine, self._connections), connection)
        )
        self._accepted.add(accepted)
        accepted.add_done_callback(self._accepted.discard)

    async def _stop(self, address: str) -> None:
        listening = self._listening.pop(address)
        self._loop.remove_reader(listening)
        listening.close()
        await asyncio.gather(*self._accepted, return_exceptions=True)
        for each in [connection for connection in self._connections if connection.address == address]:
            each.abort()

    async def _stop_all(self) -> None:
        for address in list(self._listening):
            await self._stop(address)


class _Tracked(EngineProtocol):
    """A connection that can be reset with its engine."""

    def __init__(self, engine: Engine, connections: "set[_Tracked]") -> None:
        super().__init__(engine)
        self._connections = connections

    @property
    def address(self) -> str:
        return self._engine.address

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._connections.discard(self)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


@contextmanager
def running_fleet(count: int) -> Iterator[Fleet]:
    """Starts so many engines; all of them are gone afterwards."""
    _allow_files(count)
    sockets = _bind(count)
    port = sockets[0].getsockname()[1]
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="engines", daemon=True)
    thread.start()
    addresses = [f"{socket.getsockname()[0]}:{port}" for socket in sockets]
    fleet = Fleet({address: Engine(address) for address in addresses}, port, loop)
    try:
        for address, listening in zip(addresses, sockets, strict=True):
            fleet.start(address, listening)
        yield fleet
    finally:
        asyncio.run_coroutine_threadsafe(fleet._stop_all(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _bind(count: int) -> list[socket.socket]:
    """Sockets that listen on neighbouring addresses and on a port that the kernel chose for the first."""
    for _ in range(_TRIES):
        network = random.randint(_FIRST_NETWORK, _LAST_NETWORK)  # noqa: S311 - not a secret
        first = int(IPv4Address(f"127.{network}.0.1"))
        port = 0
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            sockets: list[socket.socket] = []
            for number in range(count):
                bound = stack.enter_context(_listening(str(IPv4Address(first + number)), port))
                port = bound.getsockname()[1]
                sockets.append(bound)
            stack.pop_all()
            return sockets
    raise OSError(f"no port of loopback is free on {count} addresses")


def _listening(ip: str, port: int) -> socket.socket:
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((ip, port))
        bound.listen(_BACKLOG)
        bound.setblocking(False)  # noqa: FBT003 - the library's signature
    except OSError:
        bound.close()
        raise
    return bound


def _allow_files(count: int) -> None:
    """A listening socket an engine, and connections to some of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = min(8 * count + 1024, hard if hard != resource.RLIM_INFINITY else 1 << 20)
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


@dataclass(frozen=True, slots=True)
class FleetProcess:
    """Engines that run in a process of their own, and that nobody changes.

    Attributes:
        port: The one port of all of them.
        ips: Their addresses.
    """

    port: int
    ips: list[str]

    @property
    def pods(self) -> list[tuple[str, int]]:
        """Address and port of each engine."""
        return [(address, self.port) for address in self.ips]


@contextmanager
def running_fleet_process(count: int) -> Iterator[FleetProcess]:
    """Starts engines in a process of their own: load on them is none on this one."""
    command = [sys.executable, "-m", "tests.picker.harness.fleet", "--count", str(count)]
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            said = json.loads(process.stdout.readline())
            yield FleetProcess(said["port"], said["ips"])
        finally:
            process.stdin.close()


@click.command()
@click.option("--count", type=click.IntRange(1), required=True, help="How many engines.")
def main(count: int) -> None:
    """Run engines until standard input ends."""
    with running_fleet(count) as fleet:
        sys.stdout.write(json.dumps({"port": fleet.port, "ips": fleet.ips}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
