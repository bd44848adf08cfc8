"""One HTTP/2 connection, the server's side, without I/O: bytes in, events and bytes out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from kvtier_scorer.picker.http2 import frames
from kvtier_scorer.picker.http2.errors import ConnectionFailedError, ErrorCode
from kvtier_scorer.picker.http2.events import DataReceived, Event, StreamAborted, StreamOpened
from kvtier_scorer.picker.http2.frames import Setting
from kvtier_scorer.picker.http2.headers import MAX_BLOCK_BYTES, HeaderDecoder
from kvtier_scorer.picker.http2.sending import Sender

_STREAM_WINDOW_BYTES: Final = 1 << 20
_CONNECTION_WINDOW_BYTES: Final = 1 << 26
_PROTOCOL_WINDOW_BYTES: Final = 65535
_MAX_STREAMS: Final = 100_000
"""A stream stays open until its request has been answered by an engine, so there are as many as requests in
flight. Each costs about 2 KiB here."""
_PING_BYTES: Final = 8
_LEAST_GOAWAY_BYTES: Final = 8


@dataclass(slots=True)
class _Incoming:
    ended: bool
    unacknowledged_bytes: int = 0


class Connection:
    """A client's connection. `receive` what it sent, send on its streams, write `take_output` after either.

    Attributes:
        closed: Nothing more is to be read: the connection failed, or it has drained.
    """

    def __init__(self) -> None:
        self.closed = False
        self._rest = b""
        self._preface_seen = False
        self._decoder = HeaderDecoder()
        self._sender = Sender()
        self._incoming: dict[int, _Incoming] = {}
        self._last_stream_id = 0
        self._unacknowledged_bytes = 0
        self._block: tuple[int, bool, bytes] | None = None
        self._draining = False
        self._events: list[Event] = []
        self._sender.control(
            frames.settings_frame(
                {
                    Setting.HEADER_TABLE_SIZE: 0,
                    Setting.MAX_CONCURRENT_STREAMS: _MAX_STREAMS,
                    Setting.INITIAL_WINDOW_SIZE: _STREAM_WINDOW_BYTES,
                    Setting.MAX_HEADER_LIST_SIZE: MAX_BLOCK_BYTES,
                }
            )
        )
        self._grant(0, _CONNECTION_WINDOW_BYTES - _PROTOCOL_WINDOW_BYTES)

    @property
    def open_streams(self) -> int:
        """Streams that are not ended on both sides."""
        return len(self._incoming)

    def receive(self, data: bytes) -> list[Event]:
        """What the client's bytes mean. After an error of the client `closed` is True and GOAWAY is sent."""
        if self.closed:
            return []
        self._events = []
        try:
            self._read(self._rest + data if self._rest else data)
        except ConnectionFailedError as error:
            self._fail(error)
        return self._events

    def take_output(self) -> bytes:
        """The bytes to write now."""
        output, ended = self._sender.take()
        for stream_id in ended:
            incoming = self._incoming.pop(stream_id, None)
            if incoming is not None and not incoming.ended:
                # the answer is complete; the rest of the request is of no use (RFC 9113 section 8.1)
                output += frames.frame(frames.RST_STREAM, 0, stream_id, frames.word(ErrorCode.NO_ERROR))
        if self._draining and not self._incoming:
            self.closed = True
        return output

    def send_headers(self, stream_id: int, block: bytes) -> None:
        """Begin an answer. On a stream that is gone this and the following do nothing."""
        if stream_id in self._incoming:
            self._sender.headers(stream_id, block)

    def send_data(self, stream_id: int, data: bytes) -> None:
        """Send data, as the client's windows let it."""
        self._sender.data(stream_id, data)

    def send_trailers(self, stream_id: int, block: bytes) -> None:
        """End an answer."""
        self._sender.trailers(stream_id, block)

    def announce_drain(self) -> None:
        """Tell the client to open its next streams elsewhere; those under way to us are still taken."""
        self._go_away(ErrorCode.NO_ERROR, last_stream_id=frames.LARGEST_STREAM_ID)

    def drain(self) -> None:
        """Take no new streams; `closed` once those that are open have ended."""
        if not self._draining:
            self._draining = True
            self._go_away(ErrorCode.NO_ERROR)

    def _read(self, data: bytes) -> None:
        at = 0
        if not self._preface_seen:
            if not data.startswith(frames.PREFACE[: len(data)]):
                raise ConnectionFailedError(ErrorCode.PROTOCOL_ERROR, "not an HTTP/2 client")
            if len(data) < len(frames.PREFACE):
                self._rest = data
                return
            self._preface_seen, at = True, len(frames.PREFACE)
        size = len(data)
        while size - at >= frames.HEADER_BYTES:
            length, kind, flags, stream_id = frames.frame_header(data, at)
            if length > frames.DEFAULT_FRAME_BYTES:
                raise ConnectionFailedError(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {length} bytes")
            start = at + frames.HEADER_BYTES
            if size - start < length:
                break
            at = start + length
            self._frame(kind, flags, stream_id, data[start:at])
        self._rest = data[at:]

    def _frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if (self._block is not None) != (kind == frames.CONTINUATION):
            raise ConnectionFailedError(ErrorCode.PROTOCOL_ERROR, "a header block is not continued in order")
        # PRIORITY and kinds that this version does not know are to be ignored (sections 5.3.2 and 5.5)
        if (take := self._BY_KIND.get(kind)) is not None:
            take(self, flags, stream_id, payload)

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._known(stream_id, "DATA")
        self._unacknowledged_bytes += len(payload)
        if self._unacknowledged_bytes > _CONNECTION_WINDOW_BYTES // 2:
            self._grant(0, self._unacknowledged_bytes)
            self._unacknowledged_bytes = 0
        incoming = self._incoming.get(stream_id)
        if incoming is None:
            return  # sent before the client knew that the stream had ended
        if incoming.ended:
            self._reset(stream_id, ErrorCode.STREAM_CLOSED)
            return
        incoming.ended = bool(flags & frames.END_STREAM)
        incoming.unacknowledged_bytes += len(payload)
        if not incoming.ended and incoming.unacknowledged_bytes > _STREAM_WINDOW_BYTES // 2:
            self._grant(stream_id, incoming.unacknowledged_bytes)
            incoming.unacknowledged_bytes = 0
        data = frames.without_padding(payload, flags & frames.PADDED)
        self._events.append(DataReceived(stream_id, data, incoming.ended))

    def _on_header_frame(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = frames.without_padding(payload, flags)
        self._header_block(stream_id, bool(flags & frames.END_STREAM), block, flags)

    def _header_block(self, stream_id: int, ended: bool, block: bytes, flags: int) -> None:
        if len(block) > MAX_BLOCK_BYTES:
            raise ConnectionFailedError(ErrorCode.ENHANCE_YOUR_CALM, "a header block of more than 64 KiB")
        if flags & frames.END_HEADERS:
            self._block = None
            self._on_headers(stream_id, ended, block)
        else:
            self._block = (stream_id, ended, block)

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        assert self._block is not None  # noqa: S101 - _frame has made sure
        expected, ended, block = self._block
        if stream_id != expected:
            raise ConnectionFailedError(ErrorCode.PROTOCOL_ERROR, "a header block continues elsewhere")
        if not payload and not flags & frames.END_HEADERS:
            raise ConnectionFailedError(ErrorCode.ENHANCE_YOUR_CALM, "an empty CONTINUATION")
        self._header_block(stream_id, ended, block + payload, flags)

    def _on_headers(self, stream_id: int, ended: bool, block: bytes) -> None:
        headers = self._decoder.decode(block)
        incoming = self._incoming.get(stream_id)
        if incoming is not None:
            if incoming.ended or not ended:
                self._reset(stream_id, ErrorCode.PROTOCOL_ERROR)
                return
            incoming.ended = True
            self._events.append(DataReceived(stream_id, b"", ended=True))
            return
        if stream_id % 2 == 0:
            raise ConnectionFailedError(ErrorCode.PROTOCOL_ERROR, f"{stream_id} is no stream of a client")
        if stream_id <= self._last_stream_id:
            return  # trailers of a request whose answer was complete before
        if self._draining or len(self._incoming) >= _MAX_STREAMS:
            self._last_stream_id = stream_id
            refused = frames.word(ErrorCode.REFUSED_STREAM)
            self._sender.control(frames.frame(frames.RST_STREAM, 0, stream_id, refused))
            return
        self._last_stream_id = stream_id
        self._incoming[stream_id] = _Incoming(ended)
        self._sender.open(stream_id)
        self._events.append(StreamOpened(stream_id, headers, ended))

    def _on_window_update(self, _flags: int, stream_id: int, payload: bytes) -> None:
        self._known(stream_id, "WINDOW_UPDATE", or_connection=True)
        increment = frames.read_word(payload, "WINDOW_UPDATE")
        if increment == 0:
            raise ConnectionFailedError(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE by 0")
        self._sender.grown(stream_id, increment)

    def _on_reset(self, _flags: int, stream_id: int, payload: bytes) -> None:
        self._known(stream_id, "RST_STREAM")
        frames.read_word(payload, "RST_STREAM")
        if self._incoming.pop(stream_id, None) is not None:
            self._sender.forget(stream_id)
            self._events.append(StreamAborted(stream_id))

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id or (flags & frames.ACK and payload):
            raise ConnectionFailedError(ErrorCode.PROTOCOL_ERROR, "SETTINGS is broken")
        if flags & frames.ACK:
            return
        for name, value in frames.read_settings(payload):
            if name == Setting.INITIAL_WINDOW_SIZE:
                self._sender.initial_window(value)
            elif name == Setting.MAX_FRAME_SIZE:
                if not frames.DEFAULT_FRAME_BYTES <= value <= frames.LARGEST_FRAME_BYTES:
                    raise ConnectionFailedError(ErrorCode.PROTOCOL_ERROR, f"MAX_FRAME_SIZE {value}")
                self._sender.frame_limit(value)
        self._sender.control(frames.frame(frames.SETTINGS, frames.ACK, 0))

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id or len(payload) != _PING_BYTES:
            raise ConnectionFailedError(ErrorCode.PROTOCOL_ERROR, "PING is broken")
        if not flags & frames.ACK:
            self._sender.control(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _on_goaway(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id or len(payload) < _LEAST_GOAWAY_BYTES:
            raise ConnectionFailedError(ErrorCode.PROTOCOL_ERROR, "GOAWAY is broken")

    def _on_push_promise(self, _flags: int, _stream_id: int, _payload: bytes) -> None:
        raise ConnectionFailedError(ErrorCode.PROTOCOL_ERROR, "a client cannot push")

    def _known(self, stream_id: int, frame_name: str, *, or_connection: bool = False) -> None:
        if stream_id > self._last_stream_id or (stream_id == 0 and not or_connection):
            raise ConnectionFailedError(ErrorCode.PROTOCOL_ERROR, f"{frame_name} on idle stream {stream_id}")

    def _grant(self, stream_id: int, window_bytes: int) -> None:
        update = frames.frame(frames.WINDOW_UPDATE, 0, stream_id, frames.word(window_bytes))
        self._sender.control(update)

    def _reset(self, stream_id: int, code: ErrorCode) -> None:
        self._incoming.pop(stream_id, None)
        self._sender.forget(stream_id)
        self._sender.control(frames.frame(frames.RST_STREAM, 0, stream_id, frames.word(code)))
        self._events.append(StreamAborted(stream_id))

    def _go_away(self, code: ErrorCode, reason: str = "", last_stream_id: int | None = None) -> None:
        last = self._last_stream_id if last_stream_id is None else last_stream_id
        payload = frames.word(last) + frames.word(code) + reason.encode()
        self._sender.control(frames.frame(frames.GOAWAY, 0, 0, payload))

    def _fail(self, error: ConnectionFailedError) -> None:
        self._go_away(error.code, str(error))
        self._events += [StreamAborted(stream_id) for stream_id in self._incoming]
        for stream_id in self._incoming:
            self._sender.forget(stream_id)
        self._incoming.clear()
        self.closed = True

    _BY_KIND: ClassVar[Mapping[int, Callable[["Connection", int, int, bytes], None]]] = {
        frames.DATA: _on_data,
        frames.HEADERS: _on_header_frame,
        frames.CONTINUATION: _on_continuation,
        frames.WINDOW_UPDATE: _on_window_update,
        frames.RST_STREAM: _on_reset,
        frames.SETTINGS: _on_settings,
        frames.PING: _on_ping,
        frames.GOAWAY: _on_goaway,
        frames.PUSH_PROMISE: _on_push_promise,
    }
