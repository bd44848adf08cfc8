"""Clients that gRPC's library is not: they do not read, and they stop in the middle."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from tests.picker.rpc.conftest import LIMIT, Service
from tests.unit.scorer.picker.http2.peer import Frame, data, grant, whole
from tests.unit.scorer.picker.http2.peer import block as header_block

from kvtier_scorer.picker.http2 import frames
from kvtier_scorer.picker.http2.frames import Setting, frame, settings_frame
from kvtier_scorer.picker.rpc.framing import framed
from kvtier_scorer.picker.rpc.server import RpcServer

REQUEST = (
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/test.Echo/Echo"),
    (":authority", "x"),
    ("content-type", "application/grpc"),
)
WIDE = (
    frames.PREFACE
    + settings_frame({Setting.INITIAL_WINDOW_SIZE: (1 << 31) - 1})
    + grant(0, (1 << 31) - 65_536)
)


def call(stream_id: int) -> bytes:
    return frame(frames.HEADERS, frames.END_HEADERS, stream_id, header_block(REQUEST))


class Client:
    """A socket that a test writes frames to."""

    def __init__(self) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(0.0)

    async def send(self, wire: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.socket, wire)

    async def until(self, kind: int, *, ends: bool = False, payload: bytes = b"") -> list[Frame]:
        """What comes up to a frame of that kind, or all of it where the server hangs up before."""
        told: list[Frame] = []
        rest = b""
        async with asyncio.timeout(60):
            while part := await asyncio.get_running_loop().sock_recv(self.socket, 1 << 20):
                some, size = whole(rest + part)
                rest = (rest + part)[size:]
                told += some
                if any(
                    each.kind == kind and each.ends >= ends and each.payload.startswith(payload)
                    for each in some
                ):
                    break
        return told


@pytest.fixture
async def client(server: RpcServer) -> AsyncIterator[Client]:
    client = Client()
    assert server._server
    for each in (client.socket, server._server.sockets[0]):
        # little room between the two, so that little is enough to fill it
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    await asyncio.get_running_loop().sock_connect(client.socket, ("127.0.0.1", server.port))
    yield client
    client.socket.close()


def unsent_bytes(server: RpcServer) -> int:
    [connection] = server._connections
    assert connection._transport is not None
    return connection._transport.get_write_buffer_size()


def is_reading(server: RpcServer) -> bool:
    [connection] = server._connections
    assert connection._transport is not None
    return connection._transport.is_reading()


async def test_a_client_that_never_reads_is_not_read_from_either(server: RpcServer, client: Client) -> None:
    """Answers to pings are held back by no window, so that they could fill the memory."""
    pings = 200_000
    last = frame(frames.PING, 0, 0, b"the last")
    sending = asyncio.create_task(client.send(WIDE + frame(frames.PING, 0, 0, bytes(8)) * pings + last))
    async with asyncio.timeout(60):
        while not server._connections or is_reading(server):
            assert not sending.done(), "all of it was taken in"
            await asyncio.sleep(0)
    assert unsent_bytes(server) < 1 << 20
    told = await client.until(frames.PING, payload=b"the last")
    await sending
    assert sum(each.kind == frames.PING for each in told) == pings + 1
    await client.send(call(1) + data(1, framed(b"hello"), ended=True))
    assert any(each.payload == framed(b"hello") for each in await client.until(frames.HEADERS, ends=True))


async def test_answers_wait_for_a_client_that_grants_nothing(server: RpcServer, client: Client) -> None:
    narrow = frames.PREFACE + settings_frame({Setting.INITIAL_WINDOW_SIZE: 0})
    await client.send(narrow + call(1) + data(1, framed(b"hello"), ended=True))
    await client.until(frames.HEADERS)
    await client.send(frame(frames.PING, 0, 0, bytes(8)))
    assert [each.kind for each in await client.until(frames.PING)] == [frames.PING]
    assert server.calls == 0, "the service has done its part"
    await client.send(grant(1, 1000))
    told = await client.until(frames.HEADERS, ends=True)
    assert [each.payload for each in told if each.kind == frames.DATA] == [framed(b"hello")]


@pytest.mark.parametrize(
    ("after", "status"),
    [
        (data(1, framed(b"hello")[:-1], ended=True), "3"),
        (data(1, b"\x00\x00", ended=True), "3"),
        (data(1, b"\x01\x00\x00\x00\x01x", ended=True), "12"),
        (data(1, b"\x00\xff\xff\xff\xff"), "8"),
        (data(1, b"\x00" + (LIMIT + 1).to_bytes(4, "big")), "8"),
        (data(1, b"", ended=True), "0"),
    ],
    ids=["cut-off", "no-length", "compressed", "4-gib", "too-long", "no-message"],
)
async def test_a_stream_of_broken_messages_ends_with_a_status(
    client: Client, service: Service, after: bytes, status: str
) -> None:
    await client.send(WIDE + call(1) + after)
    told = await client.until(frames.HEADERS, ends=True)
    [trailers] = [each for each in told if each.kind == frames.HEADERS and each.ends]
    assert trailers.headers()["grpc-status"] == status
    await service.until_open(0)


@pytest.mark.parametrize(
    "wire",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        WIDE + call(1) + frame(frames.WINDOW_UPDATE, 0, 1, bytes(4)),
        WIDE + call(1) + b"\xff" * 30,
    ],
    ids=["http1", "tls", "window", "garbage"],
)
async def test_a_client_that_breaks_the_rules_is_hung_up_on(
    client: Client, service: Service, wire: bytes
) -> None:
    await client.send(wire)
    told = await client.until(frames.PUSH_PROMISE)  # never comes
    assert told[-1].kind == frames.GOAWAY
    await service.until_open(0)


async def test_requests_that_are_no_grpc_are_unimplemented(client: Client) -> None:
    other = header_block((*REQUEST[:-1], ("content-type", "application/json")))
    await client.send(WIDE + frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, other))
    told = await client.until(frames.HEADERS, ends=True)
    assert told[-1].headers()["grpc-status"] == "12"
