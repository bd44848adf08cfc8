"""Clients that break HTTP/2's rules lose their stream or their connection, and nothing else happens."""

import hpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scorer.picker.http2.peer import HELLO, block, connected, data, grant, opened, reset, sent

from kvtier_scorer.picker.http2 import frames
from kvtier_scorer.picker.http2.connection import Connection
from kvtier_scorer.picker.http2.errors import ErrorCode
from kvtier_scorer.picker.http2.events import StreamAborted, StreamOpened
from kvtier_scorer.picker.http2.frames import Setting, frame, settings_frame, word
from kvtier_scorer.picker.http2.headers import MAX_BLOCK_BYTES, encode_headers

P, S, C, F = (
    ErrorCode.PROTOCOL_ERROR,
    ErrorCode.FRAME_SIZE_ERROR,
    ErrorCode.COMPRESSION_ERROR,
    ErrorCode.FLOW_CONTROL_ERROR,
)
CALM = ErrorCode.ENHANCE_YOUR_CALM
LARGE = bytes(hpack.Encoder().encode([("x", "y" * 1000)])) * 100
LARGE = LARGE[: 1 << 14]


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        (frame(frames.DATA, 0, 0, b"x"), P),
        (data(3, b"x"), P),
        (frame(frames.DATA, frames.PADDED, 1, b""), S),
        (frame(frames.DATA, frames.PADDED, 1, b"\x05abc"), P),
        (bytes([0, 0x40, 1, 0, 0, 0, 0, 0, 1]), S),
        (frame(frames.HEADERS, frames.END_HEADERS, 0, block()), P),
        (frame(frames.HEADERS, frames.END_HEADERS, 2, block()), P),
        (frame(frames.HEADERS, frames.END_HEADERS | frames.PRIORITIZED, 3, b"ab"), P),
        (frame(frames.HEADERS, frames.END_HEADERS, 3, b"\xff\xff\xff\xff\xff"), C),
        (frame(frames.HEADERS, frames.END_HEADERS, 3, b"\xbe"), C),
        (frame(frames.HEADERS, 0, 3, block()) + data(1, b"x"), P),
        (frame(frames.HEADERS, 0, 3, block()) + opened(5), P),
        (frame(frames.HEADERS, 0, 3, block()) + frame(frames.CONTINUATION, frames.END_HEADERS, 5, b""), P),
        (frame(frames.HEADERS, 0, 3, b"") + frame(frames.CONTINUATION, 0, 3, b""), CALM),
        (frame(frames.HEADERS, 0, 3, LARGE) + 4 * frame(frames.CONTINUATION, 0, 3, LARGE), CALM),
        (frame(frames.CONTINUATION, frames.END_HEADERS, 1, block()), P),
        (frame(frames.RST_STREAM, 0, 0, word(8)), P),
        (reset(3), P),
        (frame(frames.RST_STREAM, 0, 1, b"abc"), S),
        (frame(frames.SETTINGS, 0, 1), P),
        (frame(frames.SETTINGS, frames.ACK, 0, bytes(6)), P),
        (frame(frames.SETTINGS, 0, 0, bytes(5)), S),
        (settings_frame({Setting.INITIAL_WINDOW_SIZE: 1 << 31}), F),
        (settings_frame({Setting.MAX_FRAME_SIZE: 100}), P),
        (settings_frame({Setting.MAX_FRAME_SIZE: 1 << 24}), P),
        (frame(frames.PUSH_PROMISE, 0, 1, bytes(4)), P),
        (frame(frames.PING, 0, 0, b"short"), P),
        (frame(frames.PING, 0, 1, bytes(8)), P),
        (frame(frames.GOAWAY, 0, 1, bytes(8)), P),
        (frame(frames.GOAWAY, 0, 0, bytes(7)), P),
        (grant(1, 0), P),
        (grant(0, 0), P),
        (grant(3, 1), P),
        (grant(0, (1 << 31) - 1), F),
        (grant(1, (1 << 31) - 1), F),
        (frame(frames.WINDOW_UPDATE, 0, 0, b"abc"), S),
    ],
)  # fmt: skip
def test_a_broken_rule_ends_the_connection_with_its_reason(wire: bytes, code: ErrorCode) -> None:
    connection = connected()
    connection.receive(opened(1))
    connection.take_output()
    assert connection.receive(wire) == [StreamAborted(1)]
    *_, last = sent(connection.take_output())
    assert (last.kind, last.code) == (frames.GOAWAY, code)
    assert last.payload[8:], "it says what was wrong"
    assert connection.closed
    assert connection.receive(HELLO) == []


@pytest.mark.parametrize("wire", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n\r\nXX"])
def test_another_protocol_is_no_client(wire: bytes) -> None:
    connection = Connection()
    connection.receive(wire)
    assert connection.closed


@pytest.mark.parametrize("wire", [data(1, b"x"), opened(1)], ids=["data", "headers"])
def test_what_comes_after_a_requests_end_resets_its_stream_alone(wire: bytes) -> None:
    connection = connected()
    connection.receive(opened(1, ended=True) + opened(3))
    assert connection.receive(wire) == [StreamAborted(1)]
    [told] = sent(connection.take_output())
    assert (told.kind, told.stream_id) == (frames.RST_STREAM, 1)
    assert (connection.closed, connection.open_streams) == (False, 1)


def test_resets_without_end_leave_nothing_behind() -> None:
    """A client that opens and resets streams costs their frames and no memory (CVE-2023-44487)."""
    connection = connected()
    for number in range(20_000):
        connection.receive(opened(2 * number + 1) + reset(2 * number + 1))
        assert connection.take_output() == b""
    assert connection.open_streams == 0
    assert not connection._sender._streams


KNOWN = [
    HELLO, opened(1), opened(3, ended=True), data(1, b"x" * 50), data(1, b"", ended=True), grant(0, 100),
    grant(1, 100), reset(1), reset(3), settings_frame({Setting.INITIAL_WINDOW_SIZE: 5}),
    settings_frame({Setting.HEADER_TABLE_SIZE: 0}), frame(frames.PING, 0, 0, bytes(8)),
    frame(frames.GOAWAY, 0, 0, bytes(8)), frame(frames.HEADERS, 0, 5, block()[:9]),
    frame(frames.CONTINUATION, frames.END_HEADERS, 5, block()[9:]),
]  # fmt: skip
FRAME = st.builds(
    frame,
    st.integers(0, 11),
    st.integers(0, 255),
    st.sampled_from([0, 1, 2, 3, 5, 7, 2**31 - 1, 2**32 - 1]),
    st.binary(max_size=30),
)


@settings(max_examples=1500)
@given(st.lists(st.one_of(st.sampled_from(KNOWN), FRAME, st.binary(max_size=20)), max_size=12), st.booleans())
def test_whatever_comes_is_answered_with_frames(wire: list[bytes], hello: bool) -> None:
    connection = connected() if hello else Connection()
    ok, end = encode_headers(((b":status", b"200"),)), encode_headers(((b"grpc-status", b"0"),))
    alive: set[int] = set()
    for each in wire:
        for event in connection.receive(each):
            if isinstance(event, StreamOpened):
                alive.add(event.stream_id)
                connection.send_headers(event.stream_id, ok)
                connection.send_data(event.stream_id, b"answer" * 5)
                connection.send_trailers(event.stream_id, end)
            elif isinstance(event, StreamAborted):
                alive.discard(event.stream_id)
        for told in sent(connection.take_output()):
            if told.stream_id and told.kind in {frames.DATA, frames.HEADERS}:
                assert told.stream_id in alive
            if told.ends and told.kind == frames.HEADERS:
                alive.discard(told.stream_id)
            assert told.kind != frames.GOAWAY or connection.closed
    assert connection.open_streams <= len(alive)
    assert len(connection._rest) < MAX_BLOCK_BYTES + (1 << 15)
