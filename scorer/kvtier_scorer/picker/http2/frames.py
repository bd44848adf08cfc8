"""Frames as bytes (RFC 9113 sections 4 and 6)."""

from enum import IntEnum
from struct import Struct
from typing import Final

from kvtier_scorer.picker.http2.errors import ConnectionFailedError, ErrorCode

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES: Final = 9
DEFAULT_FRAME_BYTES: Final = 16384
"""Payload that a frame may have where no SETTINGS says more; the least that SETTINGS may say."""
LARGEST_FRAME_BYTES: Final = (1 << 24) - 1
LARGEST_WINDOW_BYTES: Final = (1 << 31) - 1
LARGEST_STREAM_ID: Final = (1 << 31) - 1

DATA: Final = 0x0
HEADERS: Final = 0x1
PRIORITY: Final = 0x2
RST_STREAM: Final = 0x3
SETTINGS: Final = 0x4
PUSH_PROMISE: Final = 0x5
PING: Final = 0x6
GOAWAY: Final = 0x7
WINDOW_UPDATE: Final = 0x8
CONTINUATION: Final = 0x9

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
PRIORITIZED: Final = 0x20

_HEADER: Final = Struct(">IBI")
_SETTING: Final = Struct(">HI")
_WORD: Final = Struct(">I")
_PRIORITY_BYTES: Final = 5


class Setting(IntEnum):
    """RFC 9113 section 6.5.2."""

    HEADER_TABLE_SIZE = 0x1
    ENABLE_PUSH = 0x2
    MAX_CONCURRENT_STREAMS = 0x3
    INITIAL_WINDOW_SIZE = 0x4
    MAX_FRAME_SIZE = 0x5
    MAX_HEADER_LIST_SIZE = 0x6


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return _HEADER.pack((len(payload) << 8) | kind, flags, stream_id) + payload


def frame_header(data: bytes, at: int) -> tuple[int, int, int, int]:
    """Payload length in bytes, kind, flags and stream of the frame whose 9-byte header begins at `at`."""
    length_and_kind, flags, stream_id = _HEADER.unpack_from(data, at)
    return length_and_kind >> 8, length_and_kind & 0xFF, flags, stream_id & LARGEST_STREAM_ID


def settings_frame(settings: dict[Setting, int]) -> bytes:
    """A SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(name, value) for name, value in settings.items()))


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    """Names and values of a SETTINGS frame, in their order.

    Raises:
        ConnectionFailedError: It is not made of whole settings.
    """
    if len(payload) % _SETTING.size:
        raise ConnectionFailedError(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS is cut off")
    return list(_SETTING.iter_unpack(payload))


def word(value: int) -> bytes:
    """A 32-bit number, as WINDOW_UPDATE and RST_STREAM carry it."""
    return _WORD.pack(value)


def read_word(payload: bytes, frame_name: str) -> int:
    """The one 32-bit number of a frame, without its reserved bit.

    Raises:
        ConnectionFailedError: The frame has another size.
    """
    if len(payload) != _WORD.size:
        raise ConnectionFailedError(ErrorCode.FRAME_SIZE_ERROR, f"{frame_name} of {len(payload)} bytes")
    (value,) = _WORD.unpack(payload)
    return int(value) & LARGEST_STREAM_ID


def without_padding(payload: bytes, flags: int) -> bytes:
    """The payload of DATA or HEADERS without padding and priority.

    Raises:
        ConnectionFailedError: The padding is longer than the frame, or the frame is cut off.
    """
    start, end = 0, len(payload)
    if flags & PADDED:
        if not payload:
            raise ConnectionFailedError(ErrorCode.FRAME_SIZE_ERROR, "a padded frame without padding length")
        start, end = 1, end - payload[0]
    if flags & PRIORITIZED:
        start += _PRIORITY_BYTES
    if start > end:
        raise ConnectionFailedError(ErrorCode.PROTOCOL_ERROR, "padding is longer than its frame")
    return payload[start:end]
