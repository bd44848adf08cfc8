"""How calls end."""

from enum import IntEnum
from typing import Final
from urllib.parse import quote

from kvtier_scorer.picker.http2.headers import encode_headers

_PRINTABLE: Final = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
_MOST_CHARACTERS: Final = 1000
"""Of a message that may repeat what the peer sent: with 12 bytes for each it still fits into one frame."""
_CONTENT_TYPE: Final = (b"content-type", b"application/grpc")
_OK_HEADERS: Final = ((b":status", b"200"), _CONTENT_TYPE)

HEADERS_BLOCK: Final = encode_headers(_OK_HEADERS)
"""What each answer begins with."""


class Status(IntEnum):
    """grpc/doc/statuscodes.md."""

    OK = 0
    CANCELLED = 1
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class CallError(Exception):
    """Ends a call; the message is for the peer's operator.

    Attributes:
        status: What it ends with.
    """

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


def trailers_block(status: Status, message: str, *, only: bool) -> bytes:
    """Trailers.

    Args:
        status: How the call ended.
        message: Why, percent-encoded here.
        only: Nothing was sent before, so they are the headers too.
    """
    if status is Status.OK and not only:
        return _OK_TRAILERS
    headers = [(b"grpc-status", str(int(status)).encode())]
    if message:
        headers.append((b"grpc-message", quote(message[:_MOST_CHARACTERS], safe=_PRINTABLE).encode()))
    return encode_headers((*(_OK_HEADERS if only else ()), *headers))


_OK_TRAILERS: Final = encode_headers(((b"grpc-status", b"0"),))
