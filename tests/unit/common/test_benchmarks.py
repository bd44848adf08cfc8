"""Lines of a stream, and errors as servers wrap them."""

import pytest

from kvtier_common.benchmarks import StreamedError, error_message, event_of, text_of


@pytest.mark.parametrize("line", [b"", b"\n", b": a comment\n", b"event: x\n", b"data: [DONE]\n"])
def test_a_line_without_an_event(line: bytes) -> None:
    assert event_of(line) is None


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b'data: {"choices": [{"text": "a"}]}\n', "a"),
        (b'data:{"choices":[{"delta":{"content":"b"}}]}\r\n', "b"),
        (b'data: {"choices": [{"delta": {"role": "assistant"}}]}\n', ""),
        (b'data: {"choices": [], "usage": {}}\n', ""),
    ],
)
def test_the_text_of_an_event(line: bytes, text: str) -> None:
    event = event_of(line)
    assert event is not None
    assert text_of(event) == text


def test_an_error_in_the_stream() -> None:
    with pytest.raises(StreamedError, match=r"^no room$"):
        event_of(b'data: {"error": {"message": "no\\n room"}}')


@pytest.mark.parametrize("line", [b"data: <html>", b"data: []", b"data:"])
def test_what_is_no_event(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        event_of(line)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "a\\nb"}}', "a b"),
        (b'{"error": "c"}', "c"),
        (b'{"message": "d"}', "d"),
        (b"<html>", "<html>"),
        (b"[]", "[]"),
        (b"x" * 501, "x" * 500 + " ..."),
    ],
)
def test_the_message_of_an_error(body: bytes, message: str) -> None:
    assert error_message(body) == message
