"""A client's end of an HTTP/2 connection in bytes, for tests that break its rules."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import hpack

from kvtier_scorer.picker.http2 import frames
from kvtier_scorer.picker.http2.connection import Connection
from kvtier_scorer.picker.http2.errors import ErrorCode
from kvtier_scorer.picker.http2.frames import Setting, frame, settings_frame, word

REQUEST: Final = (
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/a.B/C"),
    (":authority", "x"),
    ("content-type", "application/grpc"),
)
HELLO: Final = frames.PREFACE + settings_frame({Setting.INITIAL_WINDOW_SIZE: 1 << 16})


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that the server sent."""

    kind: int
    flags: int
    stream_id: int
    payload: bytes

    @property
    def code(self) -> ErrorCode:
        """Of GOAWAY and RST_STREAM."""
        at = 4 if self.kind == frames.GOAWAY else 0
        return ErrorCode(int.from_bytes(self.payload[at : at + 4], "big"))

    @property
    def ends(self) -> bool:
        """Whether nothing follows on its stream."""
        return bool(self.flags & frames.END_STREAM)

    def headers(self) -> dict[str, str]:
        """Of HEADERS."""
        return {str(name): str(value) for name, value in hpack.Decoder().decode(self.payload)}


def block(headers: tuple[tuple[str, str], ...] = REQUEST) -> bytes:
    """A header block without references to other blocks."""
    return bytes(hpack.Encoder().encode([hpack.NeverIndexedHeaderTuple(*each) for each in headers]))


def opened(stream_id: int, *, ended: bool = False) -> bytes:
    """HEADERS of a request."""
    flags = frames.END_HEADERS | (frames.END_STREAM if ended else 0)
    return frame(frames.HEADERS, flags, stream_id, block())


def data(stream_id: int, payload: bytes, *, ended: bool = False) -> bytes:
    """A DATA frame."""
    return frame(frames.DATA, frames.END_STREAM if ended else 0, stream_id, payload)


def grant(stream_id: int, window_bytes: int) -> bytes:
    """WINDOW_UPDATE."""
    return frame(frames.WINDOW_UPDATE, 0, stream_id, word(window_bytes))


def reset(stream_id: int) -> bytes:
    """RST_STREAM."""
    return frame(frames.RST_STREAM, 0, stream_id, word(ErrorCode.CANCEL))


def sent(output: bytes) -> Iterator[Frame]:
    """The frames that are in the server's bytes."""
    told, size = whole(output)
    assert size == len(output), "a frame is cut off"
    yield from told


def whole(output: bytes) -> tuple[list[Frame], int]:
    """The frames that are complete, and their bytes."""
    told, at = [], 0
    while at + frames.HEADER_BYTES <= len(output):
        length, kind, flags, stream_id = frames.frame_header(output, at)
        start = at + frames.HEADER_BYTES
        if start + length > len(output):
            break
        at = start + length
        told.append(Frame(kind, flags, stream_id, output[start:at]))
    return told, at


def connected(hello: bytes = HELLO) -> Connection:
    """A connection after the first exchange."""
    connection = Connection()
    assert connection.receive(hello) == []
    first, *_, last = sent(connection.take_output())
    assert (first.kind, first.flags) == (frames.SETTINGS, 0)
    assert (last.kind, last.flags) == (frames.SETTINGS, frames.ACK)
    return connection
