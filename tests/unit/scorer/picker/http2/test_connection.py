"""A connection's streams: requests in, answers out, as the windows let them."""

import hpack
import pytest
from tests.unit.scorer.picker.http2.peer import (
    HELLO,
    block,
    connected,
    data,
    grant,
    opened,
    reset,
    sent,
)

from kvtier_scorer.picker.http2 import frames
from kvtier_scorer.picker.http2.connection import Connection
from kvtier_scorer.picker.http2.errors import ErrorCode
from kvtier_scorer.picker.http2.events import DataReceived, StreamAborted, StreamOpened
from kvtier_scorer.picker.http2.frames import Setting, frame, settings_frame
from kvtier_scorer.picker.http2.headers import encode_headers

OK = encode_headers(((b":status", b"200"),))
END = encode_headers(((b"grpc-status", b"0"),))


@pytest.fixture
def connection() -> Connection:
    return connected()


def payload(output: bytes, stream_id: int) -> bytes:
    return b"".join(
        each.payload for each in sent(output) if each.kind == frames.DATA and each.stream_id == stream_id
    )


def test_a_request_and_its_answer(connection: Connection) -> None:
    opening, first, last = connection.receive(opened(1) + data(1, b"a") + data(1, b"b", ended=True))
    assert isinstance(opening, StreamOpened)
    assert dict(opening.headers)[b":path"] == b"/a.B/C"
    assert (first, last) == (DataReceived(1, b"a", ended=False), DataReceived(1, b"b", ended=True))
    connection.send_headers(1, OK)
    connection.send_data(1, b"c")
    connection.send_trailers(1, END)
    head, body, trailers = sent(connection.take_output())
    assert head.headers() == {":status": "200"}
    assert (body.kind, body.payload, body.ends) == (frames.DATA, b"c", False)
    assert trailers.headers() == {"grpc-status": "0"}
    assert trailers.ends
    assert connection.open_streams == 0


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_bytes_come_in_any_pieces(step: int) -> None:
    connection = Connection()
    wire = HELLO + opened(1) + data(1, b"x" * 100) + opened(3, ended=True) + data(1, b"", ended=True)
    events = [event for at in range(0, len(wire), step) for event in connection.receive(wire[at : at + step])]
    assert [type(each) for each in events] == [StreamOpened, DataReceived, StreamOpened, DataReceived]
    assert not connection.closed


def test_a_header_block_may_be_continued_and_padded(connection: Connection) -> None:
    whole = block()
    padded = bytes([3]) + bytes(5) + whole[:10] + bytes(3)
    flags = frames.PADDED | frames.PRIORITIZED | frames.END_STREAM
    wire = frame(frames.HEADERS, flags, 1, padded)
    wire += frame(frames.CONTINUATION, 0, 1, whole[10:20])
    wire += frame(frames.CONTINUATION, frames.END_HEADERS, 1, whole[20:])
    [opening] = connection.receive(wire)
    assert isinstance(opening, StreamOpened)
    assert dict(opening.headers)[b":authority"] == b"x"
    assert opening.ended
    [told] = connection.receive(opened(3) + frame(frames.DATA, frames.PADDED, 3, b"\x02hi\x00\x00"))[1:]
    assert told == DataReceived(3, b"hi", ended=False)


def test_a_clients_own_table_of_headers_is_followed(connection: Connection) -> None:
    encoder = hpack.Encoder()  # refers to headers of earlier blocks
    for number, path in enumerate(["/a", "/b", "/a", "/a"]):
        coded = encoder.encode([(":path", path), ("x-same", "same")])
        stream_id = 2 * number + 1
        [opening] = connection.receive(frame(frames.HEADERS, frames.END_HEADERS, stream_id, coded))
        assert isinstance(opening, StreamOpened)
        assert opening.headers == ((b":path", path.encode()), (b"x-same", b"same"))


def test_trailers_of_a_request_end_it(connection: Connection) -> None:
    connection.receive(opened(1) + data(1, b"a"))
    [told] = connection.receive(opened(1, ended=True))
    assert told == DataReceived(1, b"", ended=True)


def test_data_waits_for_the_streams_window_and_trailers_for_data() -> None:
    connection = connected(frames.PREFACE + settings_frame({Setting.INITIAL_WINDOW_SIZE: 10}))
    connection.receive(opened(1, ended=True) + opened(3, ended=True))
    for stream_id in (1, 3):
        connection.send_headers(stream_id, OK)
        connection.send_data(stream_id, bytes(range(25)))
        connection.send_trailers(stream_id, END)
    output = connection.take_output()
    assert payload(output, 1) == payload(output, 3) == bytes(range(10))
    assert not any(each.ends for each in sent(output))
    connection.receive(grant(1, 5))
    assert payload(connection.take_output(), 1) == bytes(range(10, 15))
    connection.receive(grant(1, 100))
    output = connection.take_output()
    assert payload(output, 1) == bytes(range(15, 25))
    assert [each.stream_id for each in sent(output) if each.ends] == [1]
    assert connection.open_streams == 1, "the other one still waits"


def test_data_waits_for_the_connections_window() -> None:
    connection = connected(frames.PREFACE + settings_frame({Setting.INITIAL_WINDOW_SIZE: 1 << 20}))
    connection.receive(opened(1, ended=True))
    connection.send_data(1, bytes(100_000))
    assert len(payload(connection.take_output(), 1)) == 65_535
    connection.receive(grant(0, 1_000))
    assert len(payload(connection.take_output(), 1)) == 1_000
    connection.receive(grant(0, 1 << 20))
    assert len(payload(connection.take_output(), 1)) == 100_000 - 66_535


def test_a_window_that_shrinks_below_nothing_has_to_be_filled_first(connection: Connection) -> None:
    connection.receive(opened(1, ended=True))
    connection.send_data(1, bytes(60_000))
    connection.take_output()
    connection.receive(settings_frame({Setting.INITIAL_WINDOW_SIZE: 10_000}))
    connection.send_data(1, b"x")
    connection.take_output()
    connection.receive(grant(0, 1 << 20) + grant(1, 50_000))
    assert payload(connection.take_output(), 1) == b""
    connection.receive(grant(1, 1))
    assert payload(connection.take_output(), 1) == b"x"


def test_frames_are_as_large_as_the_client_takes() -> None:
    settings = {Setting.INITIAL_WINDOW_SIZE: 1 << 20}
    connection = connected(frames.PREFACE + settings_frame(settings))
    connection.receive(grant(0, 1 << 24) + opened(1, ended=True))
    connection.send_data(1, bytes(40_000))
    assert [len(each.payload) for each in sent(connection.take_output())] == [16_384, 16_384, 7_232]
    connection.receive(settings_frame({Setting.MAX_FRAME_SIZE: 20_000}))
    connection.take_output()
    connection.send_data(1, bytes(40_000))
    assert [len(each.payload) for each in sent(connection.take_output())] == [20_000, 20_000]


def test_a_client_that_sends_much_is_granted_more(connection: Connection) -> None:
    """Each stream's window of 1 MiB and the connection's of 64 MiB are kept at least half open."""
    connection.receive(opened(1))
    in_flight = granted = 0
    for _ in range(5_000):
        connection.receive(data(1, bytes(16_384)))
        in_flight += 16_384
        for each in sent(connection.take_output()):
            assert each.kind == frames.WINDOW_UPDATE
            if each.stream_id == 1:
                in_flight -= int.from_bytes(each.payload, "big")
            else:
                granted += 1
        assert in_flight <= (1 << 19) + 16_384
    assert granted == 2


def test_an_answer_before_the_requests_end_lets_the_client_stop(connection: Connection) -> None:
    connection.receive(opened(1))
    connection.send_trailers(1, OK)
    trailers, stop = sent(connection.take_output())
    assert trailers.ends
    assert (stop.kind, stop.code) == (frames.RST_STREAM, ErrorCode.NO_ERROR)
    assert connection.receive(data(1, b"late") + opened(1, ended=True) + grant(1, 5) + reset(1)) == []
    assert not connection.closed


def test_a_stream_that_the_client_resets_is_gone(connection: Connection) -> None:
    connection.receive(opened(1))
    connection.send_headers(1, OK)
    connection.send_data(1, bytes(100_000))
    connection.take_output()
    assert connection.receive(reset(1)) == [StreamAborted(1)]
    connection.send_headers(1, OK)
    connection.send_data(1, b"x")
    connection.send_trailers(1, END)
    assert connection.take_output() == b""
    assert connection.open_streams == 0


def test_pings_are_answered_and_answers_to_pings_are_not(connection: Connection) -> None:
    connection.receive(frame(frames.PING, 0, 0, b"12345678") + frame(frames.PING, frames.ACK, 0, bytes(8)))
    [pong] = sent(connection.take_output())
    assert (pong.kind, pong.flags, pong.payload) == (frames.PING, frames.ACK, b"12345678")


def test_what_is_not_known_is_passed_over(connection: Connection) -> None:
    priority = frame(frames.PRIORITY, 0, 5, bytes(5))
    unknown = frame(0xBE, 0xFF, 7, b"grease") + frame(frames.SETTINGS, 0, 0, b"\x0a\x0a" + bytes(4))
    goaway = frame(frames.GOAWAY, 0, 0, bytes(8) + b"bye")
    assert len(connection.receive(priority + unknown + goaway + opened(1))) == 1


def test_draining_lets_open_streams_end_and_takes_no_more(connection: Connection) -> None:
    connection.receive(opened(1, ended=True))
    connection.announce_drain()
    [told] = sent(connection.take_output())
    assert (told.kind, told.code) == (frames.GOAWAY, ErrorCode.NO_ERROR)
    assert int.from_bytes(told.payload[:4], "big") == 2**31 - 1, "streams on their way are still taken"
    connection.receive(opened(3, ended=True))
    connection.drain()
    connection.drain()
    [told] = sent(connection.take_output())
    assert int.from_bytes(told.payload[:4], "big") == 3
    assert connection.receive(opened(5, ended=True)) == []
    [refused] = sent(connection.take_output())
    assert (refused.stream_id, refused.code) == (5, ErrorCode.REFUSED_STREAM)
    for stream_id in (1, 3):
        assert not connection.closed
        connection.send_trailers(stream_id, OK)
        connection.take_output()
    assert connection.closed
