"""A server with a service of the tests' own, and gRPC's own client."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import grpc
import pytest

from kvtier_scorer.picker.rpc.call import Method, Reply
from kvtier_scorer.picker.rpc.health import Health
from kvtier_scorer.picker.rpc.server import RpcServer
from kvtier_scorer.picker.rpc.status import CallError, Status

LIMIT = 32 << 20
"""Of a message to the service."""


@dataclass
class Service:
    """Answers each message with itself, but for those that tell it to do something else.

    Attributes:
        open: Calls that have begun and are not gone.
        told: Changes whenever a call comes or goes.
    """

    open: "list[Call]" = field(default_factory=list)
    told: asyncio.Condition = field(default_factory=asyncio.Condition)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def new(self, reply: Reply) -> "Call":
        call = Call(self, reply)
        self.open.append(call)
        self.tell()
        return call

    async def until_open(self, count: int) -> None:
        """Returns when so many calls are open."""
        async with asyncio.timeout(30), self.told:
            await self.told.wait_for(lambda: len(self.open) == count)

    def tell(self) -> None:
        async def tell() -> None:
            async with self.told:
                self.told.notify_all()

        task = asyncio.get_running_loop().create_task(tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@dataclass(eq=False)
class Call:
    """One call: echoes."""

    service: Service
    reply: Reply
    got: list[bytes] = field(default_factory=list)

    def message(self, message: bytes) -> None:
        self.got.append(message)
        self.service.tell()
        match message:
            case b"refuse":
                raise CallError(Status.INVALID_ARGUMENT, "no: é\n")
            case b"fail":
                raise RuntimeError("a fault of the service")
            case b"hold":
                return
            case b"finish":
                self.reply.finish()
        self.reply.send([message])

    def oversized(self, limit_bytes: int) -> bool:
        if not self.got:
            return False
        self.reply.send([b"at most %d" % limit_bytes])
        self.reply.finish()
        return True

    def half_closed(self) -> None:
        if self.got[-1:] != [b"hold"]:
            self.reply.finish()

    def gone(self) -> None:
        self.service.open.remove(self)
        self.service.tell()


@pytest.fixture
async def service() -> Service:
    return Service()


@pytest.fixture
async def health() -> Health:
    return Health()


@pytest.fixture
async def server(service: Service, health: Health) -> AsyncIterator[RpcServer]:
    methods = {b"/test.Echo/Echo": Method(service.new, LIMIT), **health.methods()}
    server = RpcServer(methods, "127.0.0.1", 0)
    await server.start()
    yield server
    await server.drain(0.0)


@pytest.fixture
async def channel(server: RpcServer) -> AsyncIterator[grpc.aio.Channel]:
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}", options=options) as channel:
        yield channel
