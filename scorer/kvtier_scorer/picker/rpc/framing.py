"""Messages in a stream of bytes: a flag, a length, the message."""

from struct import Struct
from typing import Final

from kvtier_scorer.picker.rpc.status import CallError, Status

_PREFIX: Final = Struct(">BI")


class MessageTooLargeError(CallError):
    """A message is longer than the service takes; it has not been read."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            Status.RESOURCE_EXHAUSTED, f"a message of {size_bytes} bytes, the limit is {limit_bytes}"
        )


def framed(message: bytes) -> bytes:
    """A message, uncompressed, as it is sent."""
    return _PREFIX.pack(0, len(message)) + message


class MessageReader:
    """Finds the messages of one stream.

    Args:
        limit_bytes: A longer message is refused as soon as its length is known.
    """

    __slots__ = ("_limit_bytes", "_rest")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._rest = bytearray()

    @property
    def empty(self) -> bool:
        """Whether the stream may end here: no message is cut off."""
        return not self._rest

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete with `data`.

        Raises:
            MessageTooLargeError: One is too long.
            CallError: One is compressed, which nobody asked for.
        """
        rest = self._rest
        rest += data
        messages = []
        at, size = 0, len(rest)
        while size - at >= _PREFIX.size:
            compressed, length = _PREFIX.unpack_from(rest, at)
            if compressed:
                raise CallError(Status.UNIMPLEMENTED, "compressed messages are not supported")
            if length > self._limit_bytes:
                raise MessageTooLargeError(length, self._limit_bytes)
            start = at + _PREFIX.size
            if size - start < length:
                break
            at = start + length
            messages.append(bytes(memoryview(rest)[start:at]))
        if at:
            del rest[:at]
        return messages
