"""Raw HTTP/2 frames, sent to a server and read back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
END_HEADERS: Final = 4
MAX_CONCURRENT_STREAMS: Final = 3
_HEAD: Final = 9


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame."""

    kind: int
    flags: int
    stream_id: int
    payload: bytes


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """One frame as bytes."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream_id.to_bytes(4, "big") + payload


def literal(name: str, value: str) -> bytes:
    """A header that is not indexed; both of at most 126 bytes."""
    return b"\x10" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def call_headers(path: str) -> bytes:
    """What begins a gRPC call."""
    fields = {
        ":method": "POST", ":scheme": "http", ":path": path, ":authority": "picker",
        "te": "trailers", "content-type": "application/grpc",
    }  # fmt: skip
    return b"".join(literal(name, value) for name, value in fields.items())


HELLO: Final = PREFACE + frame(SETTINGS, 0, 0)


@dataclass(frozen=True, slots=True)
class Peer:
    """A connection of a client."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def frames(self) -> list[Frame]:
        """All that comes until the server ends the connection."""
        found = []
        try:
            while True:
                found.append(await self.next())
        except (asyncio.IncompleteReadError, ConnectionError):
            return found

    async def next(self) -> Frame:
        """The next frame."""
        head = await self.reader.readexactly(_HEAD)
        payload = await self.reader.readexactly(int.from_bytes(head[:3], "big"))
        return Frame(head[3], head[4], int.from_bytes(head[5:9], "big"), payload)

    async def before(self, kind: int) -> AsyncIterator[Frame]:
        """All that comes before a frame of a kind."""
        while (found := await self.next()).kind != kind:
            yield found

    async def until(self, kind: int) -> Frame:
        """The next frame of a kind."""
        while (found := await self.next()).kind != kind:
            pass
        return found


@asynccontextmanager
async def connected(port: int, first: bytes = HELLO) -> AsyncIterator[Peer]:
    """A connection that has sent what begins it, its SETTINGS say."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(first)
        yield Peer(reader, writer)
    finally:
        if reader.at_eof():  # what was not sent yet, nobody reads
            writer.transport.abort()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
