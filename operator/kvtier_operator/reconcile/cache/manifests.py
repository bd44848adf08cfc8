"""What live objects say, kept until it was found to be as wanted: a bound for each of them, and for all.

Whoever may make an object can give it kvtier's label and any owner, and then nobody ever compares it.
"""

import zlib
from dataclasses import dataclass
from typing import Any, Final

import orjson

_MOST_OBJECT_BYTES: Final = 256 << 10
"""As JSON; what a spec of 64 KiB makes is shorter."""
_MOST_BYTES: Final = 32 << 20
"""Compressed; the objects of one resource have 10 KB."""


@dataclass(slots=True)
class ContentRoom:
    """What there is for all of them.

    Attributes:
        most_bytes: What may be kept.
        kept_bytes: What is.
    """

    most_bytes: int = _MOST_BYTES
    kept_bytes: int = 0

    def keep(self, text: bytes) -> "Content | None":
        """Keeps an object's content; None where there is no room: it counts as not as wanted.

        Args:
            text: The content as JSON.
        """
        if len(text) > _MOST_OBJECT_BYTES:
            return None
        packed = zlib.compress(text, 1)
        if self.kept_bytes + len(packed) > self.most_bytes:
            return None
        self.kept_bytes += len(packed)
        return Content(packed, self)


@dataclass(slots=True)
class Content:
    """Of one object."""

    _packed: bytes
    _room: ContentRoom

    def read(self) -> Any:  # noqa: ANN401 - as JSON is
        """What it says."""
        return orjson.loads(zlib.decompress(self._packed))

    def let_go(self) -> None:
        """Gives its room back; it says nothing after that."""
        self._room.kept_bytes -= len(self._packed)
        self._packed = b""
