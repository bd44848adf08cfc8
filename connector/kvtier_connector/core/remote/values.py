"""How a block lies in a store: under which keys, in pieces of which sizes, with what behind each."""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache, cached_property
from itertools import accumulate
from typing import Final

from kvtier_common.redis_protocol import size_class_below
from kvtier_connector.config import REMOTE_VALUE_BYTES
from kvtier_connector.core.disk.files.fingerprint import Fingerprint
from kvtier_connector.core.remote.seals import SEAL_BYTES, Checksum, KeyedMac, Seal
from kvtier_connector.core.remote.store import Value

_SPARE_BYTES: Final = 64
"""Of a value, what a server adds to its bytes in the same allocation: the string's header and end (sds.h of
Redis and Valkey)."""
_SMALLEST_BYTES: Final = 256 << 10
"""Smaller ones are not cut further: what is lost by rounding them up is less than another request."""
_LENGTH_BYTES: Final = 4
_NEWEST: Final = b"newest"  # in the place of a block's key, by which its seal is bound to what it is
_NAMES_BYTES: Final = 16  # of the fingerprint's hash in keys


def piece_sizes(block_bytes: int) -> tuple[int, ...]:
    """Cut a block into pieces that fill what a server allocates for their values, of 4 MiB at most."""
    beside_bytes = SEAL_BYTES + _SPARE_BYTES
    pieces = list[int]()
    left = block_bytes
    while left > _SMALLEST_BYTES:
        allocated = size_class_below(min(REMOTE_VALUE_BYTES, left + beside_bytes))
        pieces.append(min(left, allocated - beside_bytes))
        left -= pieces[-1]
    return (*pieces, left) if left else tuple(pieces)


class BlockLayout:
    """Where the blocks of one kind of engine lie in a store, and how it is seen that they are whole."""

    def __init__(
        self, share: str, fingerprint: Callable[[], Fingerprint], block_bytes: int, *, mac_key: bytes = b""
    ) -> None:
        """Lay out blocks.

        Args:
            share: What engines name that may read each other's blocks; a server's rules go by it.
            fingerprint: Tells what the blocks' bytes mean: others' keys differ. Asked once, when a key is
                first made, since it may read all of a model's weights.
            block_bytes: Of a block, all ranks together.
            mac_key: What engines have that may write them, and others who reach the store have not; empty
                where all who may write are trusted. Keys of blocks with another differ.
        """
        self._share = share
        self._fingerprint = cache(fingerprint)
        self._mac_key = mac_key
        self.epoch = ""
        """Since when blocks are found: those of another epoch lie under other keys."""
        self.block_bytes = block_bytes
        self.pieces = piece_sizes(block_bytes)
        """Bytes of each piece, without what is behind it."""
        self.first_value_bytes = self.pieces[0] + SEAL_BYTES
        """Of the value by which it is seen that a block is there: its first piece, which is written last."""

    def of_epoch(self, epoch: str) -> "BlockLayout":
        """Return where the blocks of an epoch lie; empty for those of a share that never began a new one."""
        other = copy(self)
        other.epoch = epoch
        vars(other).pop("_prefix", None)
        return other

    @property
    def epoch_key(self) -> bytes:
        """The key under which the share's epoch stands, for engines of every model."""
        return f"kvtier:{self._share}:epoch".encode()

    @cached_property
    def _known_fingerprint(self) -> Fingerprint:
        return self._fingerprint()

    @cached_property
    def _seal(self) -> Seal:
        return KeyedMac(self._mac_key) if self._mac_key else Checksum(self._known_fingerprint.number)

    @cached_property
    def _prefix(self) -> str:
        meaning = self._known_fingerprint.text.encode() + self._seal.name + self.epoch.encode()
        return f"kvtier:{self._share}:{hashlib.sha256(meaning).hexdigest()[: 2 * _NAMES_BYTES]}:"

    def key(self, block_key: bytes, piece: int = 0) -> bytes:
        """Return a piece's key; all of a block are in one hash slot of a cluster, by what is in braces."""
        return f"{self._prefix}{{{block_key.hex()}}}:{piece}".encode()

    @property
    def rates_key(self) -> bytes:
        """The key of what engines have learnt of their pace."""
        return f"{self._prefix}rates".encode()

    def newest(self, size_bytes: int) -> Value:
        """Return room for the list of the blocks that engines used last, of so many bytes with its seal."""
        memory = bytearray(size_bytes - SEAL_BYTES)
        return Value(f"{self._prefix}newest".encode(), (memoryview(memory), _room()))

    def seal_newest(self, keys: Sequence[bytes]) -> Value:
        """Return that list as a value."""
        content = _keys_packed(keys)
        value = self.newest(len(content) + SEAL_BYTES)
        value.memory[0][:] = content
        self.seal(_NEWEST, [value])
        return value

    def unseal_newest(self, value: Value) -> tuple[bytes, ...]:
        """Return the blocks of a list that was read; none of one that is not as it was written."""
        return _keys_unpacked(value.memory[0]) if self.is_whole(_NEWEST, [value]) else ()

    def probe(self) -> Value:
        """Return a value of a piece's size that is no block's, to measure with."""
        return Value(f"{self._prefix}probe".encode(), (memoryview(bytearray(self.first_value_bytes)),))

    def values(self, block_key: bytes, memory: Sequence[memoryview]) -> list[Value]:
        """Return a block's pieces as values, each with room for what goes behind it."""
        ends = list(accumulate(self.pieces))
        starts = [0, *ends[:-1]]
        return [
            Value(self.key(block_key, piece), (*_between(memory, start, end), _room()))
            for piece, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]

    def seal(self, block_key: bytes, values: Sequence[Value]) -> None:
        """Write behind each piece what `is_whole` looks for."""
        for piece, value in enumerate(values):
            value.memory[-1][:] = self._seal.behind(block_key, piece, value)

    def is_whole(self, block_key: bytes, values: Sequence[Value]) -> bool:
        """Tell whether pieces that were read are those that were written for this block."""
        return all(
            hmac.compare_digest(value.memory[-1], self._seal.behind(block_key, piece, value))
            for piece, value in enumerate(values)
        )


def _keys_packed(keys: Sequence[bytes]) -> bytes:
    """Return keys of one length one after another, behind that length."""
    return len(keys[0] if keys else b"").to_bytes(_LENGTH_BYTES, "little") + b"".join(keys)


def _keys_unpacked(content: memoryview) -> tuple[bytes, ...]:
    key_bytes, keys = int.from_bytes(content[:_LENGTH_BYTES], "little"), bytes(content[_LENGTH_BYTES:])
    if not key_bytes or len(keys) % key_bytes:
        return ()
    return tuple(keys[first : first + key_bytes] for first in range(0, len(keys), key_bytes))


def _room() -> memoryview:
    return memoryview(bytearray(SEAL_BYTES))


def _between(memory: Sequence[memoryview], start: int, end: int) -> list[memoryview]:
    """Return the pieces of memory from one byte up to another of all that lie one after another."""
    pieces = list[memoryview]()
    for view in memory:
        if start < view.nbytes and end > 0:
            pieces.append(view[max(0, start) : end])
        start -= view.nbytes
        end -= view.nbytes
    return pieces
