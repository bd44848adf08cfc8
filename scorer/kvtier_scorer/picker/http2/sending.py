"""What goes out on the streams of a connection, as far as the peer's windows let it."""

from dataclasses import dataclass, field

from kvtier_scorer.picker.http2.errors import ConnectionFailedError, ErrorCode
from kvtier_scorer.picker.http2.frames import (
    DATA,
    DEFAULT_FRAME_BYTES,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    LARGEST_WINDOW_BYTES,
    frame,
)

_INITIAL_WINDOW_BYTES = 65535
_OUR_LARGEST_FRAME_BYTES = 64 << 10
"""A larger frame would keep the answers of other streams waiting."""


@dataclass(slots=True)
class _Outgoing:
    window_bytes: int
    waiting: bytearray = field(default_factory=bytearray)
    trailers: bytes | None = None


class Sender:
    """Cuts data into frames and holds it back while a window is closed. Trailers keep their place after it.

    Attributes:
        frame_bytes: Payload of a frame that the peer takes.
    """

    def __init__(self) -> None:
        self.frame_bytes = DEFAULT_FRAME_BYTES
        self._window_bytes = _INITIAL_WINDOW_BYTES
        self._initial_bytes = _INITIAL_WINDOW_BYTES
        self._streams: dict[int, _Outgoing] = {}
        self._frames: list[bytes] = []
        self._ended: list[int] = []

    def take(self) -> tuple[bytes, list[int]]:
        """The bytes to write now, and the streams whose last byte is among them."""
        output, ended = b"".join(self._frames), self._ended
        self._frames, self._ended = [], []
        return output, ended

    def control(self, raw: bytes) -> None:
        """Send a frame that no window holds back."""
        self._frames.append(raw)

    def open(self, stream_id: int) -> None:
        """Let data be sent on a stream."""
        self._streams[stream_id] = _Outgoing(self._initial_bytes)

    def forget(self, stream_id: int) -> None:
        """Send nothing more on a stream."""
        self._streams.pop(stream_id, None)

    def headers(self, stream_id: int, block: bytes) -> None:
        """Send the headers of an answer. They must fit into one frame."""
        self._frames.append(frame(HEADERS, END_HEADERS, stream_id, block))

    def data(self, stream_id: int, data: bytes) -> None:
        """Send data, now or when the windows let it. A stream that is gone takes none."""
        outgoing = self._streams.get(stream_id)
        if outgoing is None:
            return
        room = min(outgoing.window_bytes, self._window_bytes)
        if outgoing.waiting or len(data) > room:
            outgoing.waiting += data
            self._flush(stream_id, outgoing)
            return
        self._cut(stream_id, outgoing, data)

    def trailers(self, stream_id: int, block: bytes) -> None:
        """End a stream, after all of its data."""
        outgoing = self._streams.get(stream_id)
        if outgoing is None:
            return
        outgoing.trailers = block
        self._flush(stream_id, outgoing)

    def grown(self, stream_id: int, by_bytes: int) -> None:
        """WINDOW_UPDATE: the peer takes more, on one stream or (0) on all of them together.

        Raises:
            ConnectionFailedError: A window is larger than any may be.
        """
        if stream_id == 0:
            self._window_bytes = _checked(self._window_bytes + by_bytes)
            self._flush_all()
        elif (outgoing := self._streams.get(stream_id)) is not None:
            outgoing.window_bytes = _checked(outgoing.window_bytes + by_bytes)
            self._flush(stream_id, outgoing)

    def initial_window(self, size_bytes: int) -> None:
        """SETTINGS: what every stream, also those that are open, begins with.

        Raises:
            ConnectionFailedError: A window is larger than any may be.
        """
        change = _checked(size_bytes) - self._initial_bytes
        self._initial_bytes = size_bytes
        for outgoing in self._streams.values():
            outgoing.window_bytes = _checked(outgoing.window_bytes + change)
        self._flush_all()

    def frame_limit(self, size_bytes: int) -> None:
        """SETTINGS: payload of a frame that the peer takes."""
        self.frame_bytes = min(size_bytes, _OUR_LARGEST_FRAME_BYTES)

    def _flush_all(self) -> None:
        for stream_id, outgoing in tuple(self._streams.items()):
            self._flush(stream_id, outgoing)

    def _flush(self, stream_id: int, outgoing: _Outgoing) -> None:
        room = min(len(outgoing.waiting), outgoing.window_bytes, self._window_bytes)
        if room > 0:
            self._cut(stream_id, outgoing, bytes(memoryview(outgoing.waiting)[:room]))
            del outgoing.waiting[:room]
        if outgoing.trailers is not None and not outgoing.waiting:
            self._frames.append(frame(HEADERS, END_HEADERS | END_STREAM, stream_id, outgoing.trailers))
            del self._streams[stream_id]
            self._ended.append(stream_id)

    def _cut(self, stream_id: int, outgoing: _Outgoing, data: bytes) -> None:
        outgoing.window_bytes -= len(data)
        self._window_bytes -= len(data)
        step = self.frame_bytes
        self._frames += [
            frame(DATA, 0, stream_id, data[start : start + step]) for start in range(0, len(data), step)
        ]


def _checked(window_bytes: int) -> int:
    if window_bytes > LARGEST_WINDOW_BYTES:
        raise ConnectionFailedError(ErrorCode.FLOW_CONTROL_ERROR, "a window of more than 2^31 - 1 bytes")
    return window_bytes
