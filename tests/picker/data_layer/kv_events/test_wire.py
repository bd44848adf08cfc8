"""Pods that speak ZeroMQ's protocol only as far as it hurts: messages that never end, and many of them."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest
import zmq
import zmq.asyncio
from tests.picker.data_layer.kv_events.followed_pod import IP, followed_pod
from tests.picker.data_layer.polling import until

from kvtier_scorer.picker.engines.kv_events.limits import LARGE_MESSAGES, MOST_MESSAGE_BYTES
from kvtier_scorer.picker.engines.kv_events.subscriber import EventPorts
from kvtier_scorer.picker.engines.kv_events.zmtp import (
    DEFAULT_TIMEOUTS,
    MessageTimeouts,
    ZmtpError,
    connection_to,
)

_GREETING: Final = b"\xff" + bytes(8) + b"\x7f" + bytes([3, 1]) + b"NULL".ljust(20, b"\0") + bytes(32)
_READY: Final = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"
_PIECE: Final = bytes(1 << 16)
_BUFFERS_BYTES: Final = 8 << 20
"""What kernels on both sides of a connection, and the reader, may have taken in."""


@dataclass
class _Peer:
    """Greets, then sends pieces for as long as they are taken.

    Attributes:
        first: What is sent once.
        head: What comes before each of the pieces that follow; `_SILENT` to send none.
        greeting: What it begins with.
        sent_bytes: So much was taken from it, on all connections.
        lost: How many connections ended.
        port: Where it listens.
    """

    first: bytes
    head: bytes
    greeting: bytes = _GREETING + _READY
    sent_bytes: int = 0
    lost: int = 0
    port: int = 0
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["_Peer"]:
        server = await asyncio.start_server(self._serve, IP, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.gather(*self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.append(task)
        self._writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            writer.write(self.greeting)
            await reader.readexactly(64 + 27)
            writer.write(self.first)
            while self.head is not _SILENT:
                writer.write(self.head + _PIECE)
                await writer.drain()
                self.sent_bytes += len(_PIECE)
            await reader.read()
        self.lost += 1
        writer.close()


_SILENT: Final = b"silent"
_ENDLESS_FRAMES: Final = b"\x03" + struct.pack(">Q", len(_PIECE))


def _long(size_bytes: int) -> bytes:
    return b"\x02" + struct.pack(">Q", size_bytes)


async def test_a_message_of_endless_frames_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    async with _Peer(b"", _ENDLESS_FRAMES).running() as peer, followed_pod(EventPorts(peer.port)):
        await until(lambda: "a message of its KV events is longer than any engine's" in caplog.text)
        await until(lambda: peer.lost > 0)
    assert peer.sent_bytes < MOST_MESSAGE_BYTES + _BUFFERS_BYTES


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (_long(MOST_MESSAGE_BYTES + 1), "longer than any engine's"),
        (_long((1 << 64) - 1), "longer than any engine's"),
        (b"\x06" + struct.pack(">Q", 1 << 40), "longer than any"),
        (b"\x06" + struct.pack(">Q", 1 << 11), "a command of its KV events is longer than any"),
        (b"\x01\x00\x04\x05\x04PING", "or within a message"),
        (b"\x01\x00" * 4 + b"\x00\x00", "longer than any engine's"),
        (b"\x00\x05abc", "does not end"),
        (_long(1 << 20), "does not end"),
        (b"\x01\x00", "does not end"),
    ],
)
async def test_no_message_is_longer_in_bytes_frames_or_time(first: bytes, message: str) -> None:
    async with _Peer(first, _SILENT).running() as peer:
        with pytest.raises(ZmtpError, match=message):
            await _read(peer, asyncio.Semaphore(), MessageTimeouts(0.2, 0.2))
    assert peer.sent_bytes == 0


@pytest.mark.parametrize(
    "greeting",
    [b"HTTP/1.1 200 OK\r\n" * 5, _GREETING.replace(b"NULL", b"PLAI"), _GREETING + b"\x04\x02\x01E"],
)
async def test_who_is_no_publisher_is_told(greeting: bytes) -> None:
    async with _Peer(b"", _SILENT, greeting).running() as peer:
        with pytest.raises(ZmtpError, match="its port of KV events"):
            await _read(peer, asyncio.Semaphore())


async def test_large_messages_are_held_a_few_at_a_time() -> None:
    """All of them begin a message of 4 MiB that never is whole: only some are read, small ones all."""
    room = asyncio.Semaphore(LARGE_MESSAGES)
    unfinished = _long(MOST_MESSAGE_BYTES)
    async with AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(_Peer(unfinished, _SILENT).running()) for _ in range(9)]
        readers = [asyncio.create_task(_read(peer, room)) for peer in peers]
        await until(room.locked)
        small = await stack.enter_async_context(_Peer(b"\x00\x03abc", _SILENT).running())
        assert await _read(small, room) == [b"abc"]
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        assert not room.locked()


async def _read(
    peer: _Peer, room: asyncio.Semaphore, timeouts: MessageTimeouts = DEFAULT_TIMEOUTS
) -> list[bytes]:
    async with (
        connection_to(IP, peer.port, "SUB", room, timeouts) as connection,
        connection.message() as frames,
    ):
        return frames


async def test_a_publisher_with_heartbeats_at_ipv6_and_a_long_topic_is_heard_on() -> None:
    context = zmq.asyncio.Context()
    events = context.socket(zmq.XPUB)
    for option, value in ((zmq.IPV6, 1), (zmq.HEARTBEAT_IVL, 20), (zmq.HEARTBEAT_TIMEOUT, 60)):
        events.setsockopt(option, value)
    port = events.bind_to_random_port("tcp://[::1]")
    topic = b"t" * 300
    try:
        async with connection_to("::1", port, "SUB", asyncio.Semaphore()) as connection:
            connection.send(b"\x01" + topic)
            assert await events.recv() == b"\x01" + topic
            for _ in range(6):  # it would be gone after three
                async with connection.message() as frames:
                    assert frames == []
            await events.send_multipart([topic, b"", b"payload"])
            while not frames:
                async with connection.message() as frames:
                    pass
            assert frames == [topic, b"", b"payload"]
    finally:
        context.destroy(linger=0)
