"""gRPC's own client calls our server."""

import asyncio
import logging
from typing import TypeAlias

import grpc
import pytest
from tests.picker.rpc.conftest import LIMIT, Service

from kvtier_scorer.picker.rpc.health import Health
from kvtier_scorer.picker.rpc.server import RpcServer

Stream: TypeAlias = grpc.aio.StreamStreamCall[bytes, bytes]


def echo(channel: grpc.aio.Channel, compression: grpc.Compression | None = None) -> Stream:
    method: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream("/test.Echo/Echo")
    return method(compression=compression)


async def said(call: Stream, message: bytes) -> bytes:
    await call.write(message)
    answer = await call.read()
    assert isinstance(answer, bytes)
    return answer


async def unary(channel: grpc.aio.Channel, path: str, request: bytes) -> bytes:
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
    return await method(request)


async def test_a_unary_call_is_answered(channel: grpc.aio.Channel) -> None:
    assert await unary(channel, "/test.Echo/Echo", b"hello") == b"hello"
    assert await unary(channel, "/test.Echo/Echo", b"") == b""


async def test_messages_are_answered_one_by_one_until_the_client_ends(
    channel: grpc.aio.Channel, service: Service
) -> None:
    call = echo(channel)
    for number in range(200):
        message = b"%d" % number * (number * 7)
        assert await said(call, message) == message
    await call.done_writing()
    assert await call.read() == grpc.aio.EOF
    assert await call.code() == grpc.StatusCode.OK
    await service.until_open(0)


@pytest.mark.parametrize("size", [16_384, 65_535, 65_536, 1 << 20, LIMIT])
async def test_a_message_of_any_size_comes_back_as_it_was(channel: grpc.aio.Channel, size: int) -> None:
    message = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    call = echo(channel)
    assert await said(call, message) == message
    assert await said(call, b"and the next one") == b"and the next one"
    await call.done_writing()
    assert await call.code() == grpc.StatusCode.OK


async def test_many_streams_at_a_time_keep_apart(channel: grpc.aio.Channel, service: Service) -> None:
    calls = [echo(channel) for _ in range(500)]

    async def talk(number: int, call: Stream) -> None:
        for turn in range(3):
            message = b"%d/%d " % (number, turn) * 500
            assert await said(call, message) == message

    await asyncio.gather(*(talk(number, call) for number, call in enumerate(calls)))
    assert len(service.open) == 500
    for call in calls:
        await call.done_writing()
    assert {await call.code() for call in calls} == {grpc.StatusCode.OK}
    await service.until_open(0)


async def test_a_call_that_is_refused_says_why(channel: grpc.aio.Channel, service: Service) -> None:
    call = echo(channel)
    await call.write(b"refuse")
    assert await call.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert await call.details() == "no: é\n"
    await service.until_open(0)


async def test_a_fault_ends_its_call_alone(
    channel: grpc.aio.Channel, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    other = echo(channel)
    assert await said(other, b"before") == b"before"
    call = echo(channel)
    await call.write(b"fail")
    assert await call.code() == grpc.StatusCode.INTERNAL
    assert "fault of the service" not in (await call.details() or "")
    assert "a fault of the service" in caplog.text
    assert await said(other, b"after") == b"after"
    other.cancel()
    await service.until_open(0)


async def test_a_message_that_is_too_long_is_refused(channel: grpc.aio.Channel, service: Service) -> None:
    call = echo(channel)
    await call.write(bytes(LIMIT + 1))
    assert await call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert str(LIMIT) in (await call.details() or "")
    call = echo(channel)
    assert await said(call, b"x") == b"x"
    assert await said(call, bytes(LIMIT + 1)) == b"at most %d" % LIMIT
    assert await call.code() == grpc.StatusCode.OK
    await service.until_open(0)


async def test_compression_that_nobody_offered_is_refused(channel: grpc.aio.Channel) -> None:
    call = echo(channel, grpc.Compression.Gzip)
    await call.write(b"x" * 1000)
    assert await call.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("path", ["/test.Echo/Other", "/", "/grpc.health.v1.Health/List"])
async def test_a_method_that_is_not_there_is_told_so(channel: grpc.aio.Channel, path: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await unary(channel, path, b"")
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


async def test_a_client_that_cancels_or_goes_leaves_nothing_behind(
    server: RpcServer, service: Service
) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        calls = [echo(channel) for _ in range(3)]
        for call in calls:
            assert await said(call, b"x") == b"x"
        calls[0].cancel()
        await service.until_open(2)
        assert server.calls == 2
    await service.until_open(0)
    assert server.calls == 0


async def test_calls_under_way_end_before_the_server_does(
    server: RpcServer, service: Service, channel: grpc.aio.Channel
) -> None:
    call = echo(channel)
    assert await said(call, b"x") == b"x"
    drain = asyncio.create_task(server.drain(30.0))
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as late:
        refused = echo(late)
        assert await refused.code() == grpc.StatusCode.UNAVAILABLE
    assert await said(call, b"y") == b"y"
    assert not drain.done()
    await call.done_writing()
    assert await call.code() == grpc.StatusCode.OK
    await drain
    assert (server.calls, service.open) == (0, [])


async def test_what_outlasts_the_grace_is_cut_off(
    server: RpcServer, service: Service, channel: grpc.aio.Channel
) -> None:
    call = echo(channel)
    assert await said(call, b"x") == b"x"
    await server.drain(0.0)
    assert await call.code() == grpc.StatusCode.UNAVAILABLE
    await service.until_open(0)


def asked(service: str) -> bytes:
    return b"\x0a" + bytes([len(service)]) + service.encode() if service else b""


CHECK = "/grpc.health.v1.Health/Check"
SERVING, NOT_SERVING, UNKNOWN = b"\x08\x01", b"\x08\x02", b"\x08\x03"


@pytest.mark.parametrize("name", ["", "readiness", "envoy.service.ext_proc.v3.ExternalProcessor"])
async def test_probes_are_told_whether_requests_can_be_picked_for(
    channel: grpc.aio.Channel, health: Health, name: str
) -> None:
    assert await unary(channel, CHECK, asked("liveness")) == SERVING
    assert await unary(channel, CHECK, asked(name)) == NOT_SERVING
    health.set_ready(ready=True)
    assert await unary(channel, CHECK, asked(name)) == SERVING


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (asked("nobody"), grpc.StatusCode.NOT_FOUND),
        (b"\x0a\xff\x0f" + b"\x01" * 2047, grpc.StatusCode.NOT_FOUND),
        (b"\xff", grpc.StatusCode.INVALID_ARGUMENT),
        (bytes(5000), grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
)
async def test_a_probe_of_something_else_is_told_so(
    channel: grpc.aio.Channel, request_: bytes, code: grpc.StatusCode
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await unary(channel, CHECK, request_)
    assert caught.value.code() == code
    assert len(caught.value.details() or "") < 2000


async def test_a_watch_is_told_of_changes_until_the_server_stops(
    server: RpcServer, channel: grpc.aio.Channel, health: Health, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
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
    await server.drain(30.0)
    assert await watch.code() == grpc.StatusCode.UNAVAILABLE
    health.set_ready(ready=True)
    assert not caplog.records
