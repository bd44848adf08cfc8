"""A server with the health service and an echo, small limits, and gRPC's own client."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

import grpc
import pytest

from kvtier_scorer.picker.gateway.transport.health import Health
from kvtier_scorer.picker.gateway.transport.server import Context, GrpcServer, Limits

ECHO: Final = "/test.Echo/Echo"
LIMITS: Final = Limits(message_bytes=1 << 20, connections=8, calls=200)
_WAIT_S: Final = 30.0


async def until(condition: Callable[[], object]) -> None:
    """Waits for what tells nobody that it has come."""
    async with asyncio.timeout(_WAIT_S):
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.001)


async def _echo(_: object, context: Context) -> None:
    while isinstance(message := await context.read(), bytes):
        await context.write(message)


@pytest.fixture
async def health() -> Health:
    return Health()


@pytest.fixture
async def server(health: Health) -> AsyncIterator[GrpcServer]:
    methods = {ECHO: grpc.stream_stream_rpc_method_handler(_echo), **health.methods()}
    server = GrpcServer(methods, LIMITS, "127.0.0.1", 0)
    await server.start()
    yield server
    await server.drain(0.0)


@pytest.fixture
async def channel(server: GrpcServer) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield channel
