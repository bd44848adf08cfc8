"""Header blocks. Decoding is the hpack library's; what the picker sends needs no compression state."""

from typing import Final

import hpack
from hpack.hpack import encode_integer

from kvtier_scorer.picker.http2.errors import ConnectionFailedError, ErrorCode

Headers = tuple[tuple[bytes, bytes], ...]

MAX_BLOCK_BYTES: Final = 64 << 10
"""Of one encoded header block, and of its decoded list; Envoy's own limit for request headers is 60 KiB."""
_REMEMBERED: Final = 512
_LITERAL_WITHOUT_INDEXING: Final = b"\x00"
_INTEGER_BITS: Final = 7


class HeaderDecoder:
    """Decodes the header blocks of one connection.

    We ask the peer for a dynamic table of 0 bytes. Once it has obliged, a block means the same wherever it
    stands, and the blocks of a connection's streams hardly differ: they are remembered.
    """

    def __init__(self) -> None:
        self._decoder = hpack.Decoder(max_header_list_size=MAX_BLOCK_BYTES)
        self._known: dict[bytes, Headers] = {}

    def decode(self, block: bytes) -> Headers:
        """Names and values in their order.

        Raises:
            ConnectionFailedError: The block is broken; what follows it could not be decoded either.
        """
        stateless = self._decoder.header_table_size == 0
        if stateless and (known := self._known.get(block)) is not None:
            return known
        try:
            headers = tuple(
                (bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)
            )
        except hpack.HPACKError as error:
            raise ConnectionFailedError(ErrorCode.COMPRESSION_ERROR, f"header block: {error}") from None
        if stateless and self._decoder.header_table_size == 0:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[block] = headers
        return headers


def encode_headers(headers: Headers) -> bytes:
    """A block that leaves the peer's table as it is, so it may be kept and sent on any stream."""
    parts = bytearray()
    for name, value in headers:
        parts += _LITERAL_WITHOUT_INDEXING
        for text in (name, value):
            parts += encode_integer(len(text), _INTEGER_BITS)
            parts += text
    return bytes(parts)
