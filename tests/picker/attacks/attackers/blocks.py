"""Header blocks of gRPC requests, by hand: what an attacker sends has to cost it little."""

from collections.abc import Callable
from typing import Final

from tests.picker.attacks.attackers.wire import END_HEADERS, HEADERS, frame
from tests.picker.attacks.neighbour import PROCESS

_FIELDS: Final = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", PROCESS.encode()),
    (b":authority", b"picker"),
    (b"te", b"trailers"),
    (b"content-type", b"application/grpc"),
)
_INDEXED, _LITERAL, _TO_INDEX = 0x80, 0x00, 0x40
_FIRST_DYNAMIC: Final = 62
_HUFFMAN: Final = 0x80
_ZEROS_BYTES: Final = 5
"""Of Huffman's code for eight of the character 0, whose five bits are all zero."""


def _text(value: bytes, *, huffman: bool = False) -> bytes:
    length, mark = len(value), _HUFFMAN if huffman else 0
    if length < 127:
        return bytes([mark | length]) + value
    length -= 127
    out = [mark | 127]
    while length > 127:
        out.append(128 | length & 127)
        length >>= 7
    return bytes([*out, length]) + value


def literal(name: bytes, value: bytes, *, huffman: bool = False) -> bytes:
    """A field that no table keeps."""
    return bytes([_LITERAL]) + _text(name) + _text(value, huffman=huffman)


PLAIN: Final = b"".join(literal(*field) for field in _FIELDS)
"""A request's block, which depends on nothing that went before."""
KEPT: Final = b"".join(bytes([_TO_INDEX]) + _text(name) + _text(value) for name, value in _FIELDS)
"""The same, for the connection's table to keep."""
AGAIN: Final = bytes(_INDEXED | _FIRST_DYNAMIC + age for age in reversed(range(len(_FIELDS))))
"""The same once more, in six bytes."""


def zeros(count: int) -> bytes:
    """A value of so many eights of the character 0, in Huffman's code."""
    return bytes(_ZEROS_BYTES * count)


def opened(stream_id: int, block: bytes = PLAIN) -> bytes:
    """A HEADERS frame that opens a stream."""
    return frame(HEADERS, END_HEADERS, stream_id, block)


def again(first: int, count: int, more: Callable[[int], bytes] = lambda _: b"") -> bytes:
    """Frames that open streams from number `first` on by six bytes each, with `more` of a stream after it."""
    ids = range(first, first + 2 * count, 2)
    return b"".join(opened(stream_id, AGAIN) + more(stream_id) for stream_id in ids)
