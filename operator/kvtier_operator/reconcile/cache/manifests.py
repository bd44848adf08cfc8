"""Manifests of live objects, kept until they are found in sync, with a limit for each and one for all.

Whoever may create an object can give it kvtier's label and any owner, and then it is never compared.
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
class ManifestStore:
    """Keeps manifests compressed, up to a limit.

    Attributes:
        most_bytes: The limit, in compressed bytes.
        kept_bytes: What is kept now.
    """

    most_bytes: int = _MOST_BYTES
    kept_bytes: int = 0

    def keep(self, text: bytes) -> "CompressedManifest | None":
        """Keeps a manifest; None where the limit leaves no room: the object then counts as out of sync.

        Args:
            text: The manifest as JSON.
        """
        if len(text) > _MOST_OBJECT_BYTES:
            return None
        packed = zlib.compress(text, 1)
        if self.kept_bytes + len(packed) > self.most_bytes:
            return None
        self.kept_bytes += len(packed)
        return CompressedManifest(packed, self)


@dataclass(slots=True)
class CompressedManifest:
    """The manifest of one object."""

    _packed: bytes
    _store: ManifestStore

    def read(self) -> Any:  # noqa: ANN401 - as JSON is
        """The manifest as plain values."""
        return orjson.loads(zlib.decompress(self._packed))

    def release(self) -> None:
        """Gives its memory back; it cannot be read after that."""
        self._store.kept_bytes -= len(self._packed)
        self._packed = b""
