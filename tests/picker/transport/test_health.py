"""Probes and watches, with gRPC's own client."""

import asyncio

import grpc
import pytest
from tests.picker.transport.conftest import ECHO

from kvtier_scorer.picker.gateway.transport.health import Health
from kvtier_scorer.picker.gateway.transport.server import GrpcServer

CHECK = "/grpc.health.v1.Health/Check"
SERVING, NOT_SERVING, UNKNOWN = b"\x08\x01", b"\x08\x02", b"\x08\x03"


def asked(service: str) -> bytes:
    return b"\x0a" + bytes([len(service)]) + service.encode() if service else b""


async def unary(channel: grpc.aio.Channel, path: str, request: bytes) -> bytes:
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
    return await method(request)


@pytest.mark.parametrize("name", ["", "readiness", "envoy.service.ext_proc.v3.ExternalProcessor"])
async def test_probes_are_told_whether_requests_can_be_picked_for(
    channel: grpc.aio.Channel, health: Health, name: str
) -> None:
    assert await unary(channel, CHECK, asked("liveness")) == SERVING
    assert await unary(channel, CHECK, asked(name)) == NOT_SERVING
    health.set_ready(ready=True)
    assert await unary(channel, CHECK, asked(name)) == SERVING


@pytest.mark.parametrize(
    ("path", "request_", "code"),
    [
        (CHECK, asked("nobody"), grpc.StatusCode.NOT_FOUND),
        (CHECK, b"\x0a\xff\x0f" + b"\x01" * 2047, grpc.StatusCode.NOT_FOUND),
        (CHECK, b"\xff", grpc.StatusCode.INVALID_ARGUMENT),
        (CHECK, bytes(5000), grpc.StatusCode.RESOURCE_EXHAUSTED),
        ("/grpc.health.v1.Health/List", b"", grpc.StatusCode.UNIMPLEMENTED),
    ],
)
async def test_a_probe_of_something_else_is_told_so(
    channel: grpc.aio.Channel, path: str, request_: bytes, code: grpc.StatusCode
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await unary(channel, path, request_)
    assert caught.value.code() == code
    assert len(caught.value.details() or "") < 2000


async def test_a_watch_is_told_of_changes_until_the_server_stops(
    server: GrpcServer, channel: grpc.aio.Channel, health: Health
) -> None:
    method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(
        "/grpc.health.v1.Health/Watch"
    )
    watch, unknown = method(asked("readiness")), method(asked("nobody"))
    assert await watch.read() == NOT_SERVING
    assert await unknown.read() == UNKNOWN
    health.set_ready(ready=True)
    assert await watch.read() == SERVING
    health.set_ready(ready=True)
    health.set_ready(ready=False)
    assert await watch.read() == NOT_SERVING
    health.end()
    assert await watch.code() == grpc.StatusCode.UNAVAILABLE
    await server.drain(30.0)


async def test_calls_under_way_end_before_the_server_does(
    server: GrpcServer, channel: grpc.aio.Channel
) -> None:
    call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(ECHO)()
    await call.write(b"x")
    assert await call.read() == b"x"
    drain = asyncio.create_task(server.drain(30.0))
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as late:
        # CANCELLED if its connection came before the port was closed
        assert await late.stream_stream(ECHO)().code() in {
            grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED,
        }  # fmt: skip
    await call.write(b"y")
    assert await call.read() == b"y"
    assert not drain.done()
    await call.done_writing()
    assert await call.code() == grpc.StatusCode.OK
    await drain


async def test_what_outlasts_the_grace_is_cut_off(server: GrpcServer, channel: grpc.aio.Channel) -> None:
    call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(ECHO)()
    await call.write(b"x")
    assert await call.read() == b"x"
    await server.drain(0.0)
    assert await call.code() == grpc.StatusCode.UNAVAILABLE
