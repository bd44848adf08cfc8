"""A body while it comes in."""

from typing import Final

_LONG_BYTES: Final = 4096
"""A shorter part is put to the one before it: an object for each byte would cost forty times the body."""


class BodyBuffer:
    """Parts of a body, in their order; they take hardly more memory than their bytes."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes | bytearray] = []

    def add(self, part: bytes) -> None:
        """One more part."""
        parts = self._parts
        if len(part) >= _LONG_BYTES or (part and not parts):
            parts.append(part)
        elif part:
            last = parts[-1]
            if type(last) is bytearray:
                last += part
            else:
                parts.append(bytearray(part))

    def take(self) -> bytes:
        """The whole body, which is not kept here."""
        parts, self._parts = self._parts, []
        # of one part, join would copy a bytearray only
        return parts[0] if len(parts) == 1 and type(parts[0]) is bytes else b"".join(parts)
