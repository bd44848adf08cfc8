"""Reads what a ZeroMQ publisher sends (ZMTP 3.0, RFC 23), and never more of it than it may send.

libzmq bounds a frame and the number of waiting messages, but takes in the frames of one message until it
ends: a pod whose message never does had 577 MiB of the picker within 4 s. Here nothing is read before there
is memory for it; what is not read waits at the pod.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from kvtier_common.http.answer import LargeReadSlot
from kvtier_scorer.picker.engines.kv_events.limits import MOST_MESSAGE_BYTES

_MORE: Final = 1
_LONG: Final = 2
_COMMAND: Final = 4
_SIGNATURE_BYTES: Final = 11  # up to the major version
_GREETING_BYTES: Final = 64
_MAJOR: Final = 3
_GREETING: Final = (
    b"\xff" + bytes(8) + b"\x7f" + bytes([_MAJOR, 0]) + b"NULL".ljust(20, b"\0") + bytes(32)
)  # fmt: skip
_READY: Final = b"\x05READY"
_PING: Final = b"\x04PING"
_PONG: Final = b"\x04PONG"
_TTL_BYTES: Final = 2
_MOST_CONTEXT_BYTES: Final = 16
_MOST_FRAMES: Final = 4  # of a replay: what a REQ socket would strip, the topic, the number, the payload
_SMALL_BYTES: Final = 64 << 10
"""A message up to here is read without a turn: what the kernel and the reader hold of it is as much."""
_RECEIVE_BYTES: Final = 128 << 10
"""The kernel's buffer of a connection: it counts as the picker's memory, and would grow to 6 MiB."""
_HANDSHAKE_S: Final = 5.0
_MOST_COMMAND_BYTES: Final = 1 << 10  # of a command: ZMTP's own have a name and a few bytes
_SHORT_BYTES: Final = 255
_KEEPALIVE: Final = ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 2))
"""A node that vanished closes no connection: it is closed after 20 s without an answer."""


class ZmtpError(Exception):
    """The peer speaks something else, or sends more than it may; the message says which, in one line."""


@dataclass(frozen=True, slots=True)
class MessageTimeouts:
    """How long one message may take: from its first byte on, and from where it has its turn as a large one.

    Others wait for that turn: 1 MiB a second.
    """

    message_s: float = 10.0
    large_s: float = 4.0


DEFAULT_TIMEOUTS: Final = MessageTimeouts()


class Connection:
    """What one peer sends on a connection that is greeted already.

    `large_messages` are those of more than 64 KiB that may be held at a time, of all peers together.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        large_messages: asyncio.Semaphore,
        timeouts: MessageTimeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._large_messages = large_messages
        self._timeouts = timeouts

    def send(self, *frames: bytes) -> None:
        """Sends a message of a few frames."""
        last = len(frames) - 1
        for at, frame in enumerate(frames):
            flags, size = _MORE if at < last else 0, len(frame)
            long = size > _SHORT_BYTES
            head = struct.pack(">BQ", flags | _LONG, size) if long else bytes([flags, size])
            self._writer.write(head + frame)

    @asynccontextmanager
    async def message(self) -> AsyncIterator[list[bytes]]:
        """The frames of the next message; its turn, if it is large, is held until the context is left.

        A command is a message without frames; PING is answered. Raises ZmtpError: it is more than a message
        may be, or takes longer; OSError: the connection is lost; EOFError: it is closed.
        """
        turn = LargeReadSlot(self._large_messages, _SMALL_BYTES)
        frames: list[bytes] = []
        left_bytes = MOST_MESSAGE_BYTES
        try:
            flags = (await self._reader.readexactly(1))[0]
            until_s = self._in(self._timeouts.message_s)
            while True:
                size = int.from_bytes(await self._read(8 if flags & _LONG else 1, until_s), "big")
                left_bytes -= size
                if left_bytes < 0 or len(frames) == _MOST_FRAMES:
                    raise ZmtpError("a message of its KV events is longer than any engine's")
                if flags & _COMMAND and (frames or size > _MOST_COMMAND_BYTES):
                    raise ZmtpError("a command of its KV events is longer than any, or within a message")
                if await turn.grew_to(MOST_MESSAGE_BYTES - left_bytes):
                    until_s = self._in(self._timeouts.large_s)
                frame = await self._read(size, until_s)
                if flags & _COMMAND:
                    self._answer(frame)
                    break
                frames.append(frame)
                if not flags & _MORE:
                    break
                flags = (await self._read(1, until_s))[0]
            yield frames
        finally:
            turn.give_back()

    def _answer(self, command: bytes) -> None:
        """Answers PING, which libzmq sends to peers of ZMTP 3.0, too, and to which it wants an answer."""
        if command.startswith(_PING) and not self._writer.transport.get_write_buffer_size():
            context = command[len(_PING) + _TTL_BYTES :][:_MOST_CONTEXT_BYTES]
            self._writer.write(bytes([_COMMAND, len(_PONG) + len(context)]) + _PONG + context)

    async def _read(self, size_bytes: int, until_s: float) -> bytes:
        """More of a message that began."""
        try:
            async with asyncio.timeout_at(until_s) as limit:
                return await self._reader.readexactly(size_bytes)
        except TimeoutError as error:
            if limit.expired():
                raise ZmtpError("a message of its KV events does not end") from error
            raise  # the node vanished

    @staticmethod
    def _in(seconds: float) -> float:
        return asyncio.get_running_loop().time() + seconds


@asynccontextmanager
async def connection_to(
    host: str,
    port: int,
    kind: str,
    large_messages: asyncio.Semaphore,
    timeouts: MessageTimeouts = DEFAULT_TIMEOUTS,
) -> AsyncIterator[Connection]:
    """A connection to the ZeroMQ socket that is bound there; `kind` is this side's: "SUB", "DEALER".

    Raises ZmtpError: what answers there is no such socket; OSError: nobody answers, or not in time; EOFError:
    the connection is closed.
    """
    async with asyncio.timeout(_HANDSHAKE_S):
        reader, writer = await _open(host, port)
    try:
        async with asyncio.timeout(_HANDSHAKE_S):
            writer.write(_GREETING + _ready_command(kind))
            await read_greeting(reader)
        yield Connection(reader, writer, large_messages, timeouts)
    finally:
        writer.transport.abort()


async def _open(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
        await asyncio.get_running_loop().sock_connect(sock, (host, port))
        return await asyncio.open_connection(sock=sock, limit=_SMALL_BYTES)
    except BaseException:
        sock.close()
        raise


async def read_greeting(reader: asyncio.StreamReader) -> None:
    """Reads what a peer begins with, up to where its messages begin.

    Raises ZmtpError: it is no ZeroMQ socket that anybody may connect to; EOFError: it is closed.
    """
    start = await reader.readexactly(_SIGNATURE_BYTES)
    if start[0] != _GREETING[0] or start[9] != _GREETING[9] or start[10] < _MAJOR:
        raise ZmtpError("its port of KV events is not ZeroMQ's, version 4 or later")
    rest = await reader.readexactly(_GREETING_BYTES - _SIGNATURE_BYTES)
    if not rest[1:].startswith(b"NULL\0"):
        raise ZmtpError("its port of KV events asks for a password or a key")
    flags, size = await reader.readexactly(2)
    if flags != _COMMAND or not (await reader.readexactly(size)).startswith(_READY):
        raise ZmtpError("its port of KV events does not become ready")


def _ready_command(kind: str) -> bytes:
    name = b"Socket-Type"
    body = _READY + bytes([len(name)]) + name + struct.pack(">I", len(kind)) + kind.encode()
    return bytes([_COMMAND, len(body)]) + body
