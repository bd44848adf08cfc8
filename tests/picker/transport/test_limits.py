"""Each limit that is a channel argument is one that the C core keeps, shown with raw frames."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TypeAlias

import grpc
import pytest
from tests.picker.transport import wire
from tests.picker.transport.conftest import ECHO, LIMITS

from kvtier_scorer.picker.gateway.transport import server as limits
from kvtier_scorer.picker.gateway.transport.server import ConnectionTimings, Context, GrpcServer, Methods

_WAIT_S = 30.0
_CHANNELS = LIMITS.calls // limits.STREAMS + 1
"""With room for one call more: gRPC's client makes the others wait."""
Echo: TypeAlias = "grpc.aio.StreamStreamMultiCallable[bytes, bytes]"


async def test_streams_of_a_connection_are_bounded_and_said(server: GrpcServer) -> None:
    async with asyncio.timeout(_WAIT_S), wire.connected(server.port) as peer:
        told = (await peer.until(wire.SETTINGS)).payload
        values = {
            int.from_bytes(told[at : at + 2], "big"): int.from_bytes(told[at + 2 : at + 6], "big")
            for at in range(0, len(told), 6)
        }
        assert values[wire.MAX_CONCURRENT_STREAMS] == limits.STREAMS
        peer.writer.write(wire.frame(wire.SETTINGS, 1, 0))
        header = wire.call_headers(ECHO)
        for number in range(limits.STREAMS + 50):
            peer.writer.write(wire.frame(wire.HEADERS, wire.END_HEADERS, 2 * number + 1, header))
        refused = await peer.until(wire.RST_STREAM)
        assert refused.stream_id > 2 * limits.STREAMS


async def test_connections_are_bounded(server: GrpcServer) -> None:
    async with asyncio.timeout(_WAIT_S), AsyncExitStack() as stack:
        for _ in range(LIMITS.connections):
            peer = await stack.enter_async_context(wire.connected(server.port))
            await peer.until(wire.SETTINGS)
        one_more = await stack.enter_async_context(wire.connected(server.port))
        assert await one_more.frames() == []
        peer.writer.close()
        while not await served(server.port):
            pass


async def served(port: int) -> bool:
    """Whether a new connection is taken."""
    async with wire.connected(port) as peer:
        try:
            await peer.until(wire.SETTINGS)
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        return True


async def test_pings_without_end_end_the_connection(server: GrpcServer) -> None:
    async with asyncio.timeout(_WAIT_S), wire.connected(server.port) as peer:
        ping, sent = wire.frame(wire.PING, 0, 0, bytes(8)), 1
        peer.writer.write(ping)
        while (ended := await peer.next()).kind != wire.GOAWAY:
            if ended.kind == wire.PING:
                peer.writer.write(ping)
                sent += 1
        assert sent < 10 * limits.PING_STRIKES  # what the server says meanwhile forgives some
        assert b"too_many_pings" in ended.payload


async def test_headers_are_bounded(channel: grpc.aio.Channel) -> None:
    method: Echo = channel.stream_stream(ECHO)
    call = method(metadata=[(f"x-{number}", "y" * 7000) for number in range(10)])
    assert await call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_header_block_that_is_too_long_is_no_call(server: GrpcServer) -> None:
    """Which the C core drops as it comes, rather than to end the connection."""
    async with asyncio.timeout(_WAIT_S), wire.connected(server.port) as peer:
        peer.writer.write(wire.frame(wire.HEADERS, 0, 1, wire.call_headers(ECHO)))
        more = b"".join(wire.literal(f"x-{number:03}", "y" * 100) for number in range(150))
        for _ in range(100):
            peer.writer.write(wire.frame(wire.CONTINUATION, 0, 1, more))
        peer.writer.write(wire.frame(wire.CONTINUATION, wire.END_HEADERS, 1))
        peer.writer.write(wire.frame(wire.PING, 0, 0, bytes(8)))
        assert wire.HEADERS not in [each.kind async for each in peer.before(wire.PING)]
        assert await served(server.port)


async def test_a_message_is_bounded(channel: grpc.aio.Channel) -> None:
    method: Echo = channel.stream_stream(ECHO)
    call = method()
    await call.write(bytes(LIMITS.message_bytes))
    assert await call.read() == bytes(LIMITS.message_bytes)
    await call.write(bytes(LIMITS.message_bytes + 1))
    assert await call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_calls_are_bounded(server: GrpcServer) -> None:
    channels = [
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}", [("grpc.use_local_subchannel_pool", 1)])
        for _ in range(_CHANNELS)
    ]
    methods: list[Echo] = [channel.stream_stream(ECHO) for channel in channels]
    calls = []
    for number in range(LIMITS.calls):
        call = methods[number % _CHANNELS]()
        await call.write(b"x")
        assert await call.read() == b"x"
        calls.append(call)
    over = methods[-1]()
    assert await over.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    for channel in channels:
        await channel.close()


@pytest.mark.parametrize(
    ("timings", "first"),
    [(ConnectionTimings(handshake_ms=1000), b""), (ConnectionTimings(idle_ms=1000), wire.HELLO)],
    ids=["silent", "without-a-call"],
)
async def test_a_connection_without_a_call_has_a_deadline(timings: ConnectionTimings, first: bytes) -> None:
    server = GrpcServer({}, replace(LIMITS, timings=timings), "127.0.0.1", 0)
    await server.start()
    try:
        async with asyncio.timeout(_WAIT_S), wire.connected(server.port, first) as peer:
            assert wire.GOAWAY in [frame.kind for frame in await peer.frames()]
    finally:
        await server.drain(0.0)


async def test_a_peer_that_is_gone_is_found_out() -> None:
    """Its machine, that is: nothing closes the connection, on which a call is open."""
    timings = ConnectionTimings(keepalive_ms=1000, keepalive_timeout_ms=1000)
    methods: Methods = {ECHO: grpc.stream_stream_rpc_method_handler(_until_the_end)}
    server = GrpcServer(methods, replace(LIMITS, timings=timings), "127.0.0.1", 0)
    await server.start()
    try:
        async with asyncio.timeout(_WAIT_S), wire.connected(server.port) as peer:
            peer.writer.write(wire.frame(wire.SETTINGS, 1, 0))
            peer.writer.write(wire.frame(wire.HEADERS, wire.END_HEADERS, 1, wire.call_headers(ECHO)))
            assert wire.PING in [frame.kind for frame in await peer.frames()]
    finally:
        await server.drain(0.0)


async def _until_the_end(_: object, context: Context) -> None:
    await context.read()
