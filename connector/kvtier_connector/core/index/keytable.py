"""A hash table from block keys to slots in flat arrays: no Python object per entry, no rehash pause.

Separate chaining (Knuth, The Art of Computer Programming, vol. 3, 6.4) with the links, in both directions,
held in the slots themselves. All arrays are sized once from the capacity and written at once (np.full, where
np.zeros would leave the page faults to later calls), so no operation ever grows, moves or first touches them.
Every step works on a whole batch of keys in a compiled loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kvtier_connector.core.compiled import compiled

Slots = npt.NDArray[np.int32]
PackedKeys = npt.NDArray[np.uint8]  # keys as rows, shape (keys, key bytes)
Words = npt.NDArray[np.uint64]  # keys as rows of 64-bit words, zero-padded, shape (keys, words)
Buckets = npt.NDArray[np.int64]  # the bucket that each key belongs to, shape (keys,)
Places = npt.NDArray[np.int64]  # where keys are in their batch, shape (keys,)
Marks = npt.NDArray[np.uint64]  # 64 bits of each key, the same in every table, shape (keys,)

ABSENT: Final = -1
_WORD_BYTES: Final = 8
_NEXT: Final = 0
_PREVIOUS: Final = 1
_BUCKETS_PER_SLOT: Final = 2
"""Chains of half a key on average: most walks end after one step, for 4 to 8 bytes a slot."""


class _Table(NamedTuple):
    """The table's arrays."""

    keys: Words  # of each slot
    heads: Slots  # the first slot of each bucket, or ABSENT
    # from each slot to those behind and before it in its bucket, shape (capacity, 2). Behind the last is
    # ABSENT; before the first the bucket's complement, so that a key leaves without a hash.
    links: Slots


_BUCKETS = np.empty(0, np.int64)
_TABLE = _Table(np.empty((0, 0), np.uint64), np.empty(0, np.int32), np.empty((0, 2), np.int32))


@dataclass(frozen=True, slots=True)
class KeyBatch:
    """Keys ready for the table."""

    words: Words
    buckets: Buckets


class KeyTable:
    """Maps keys of one fixed length to slots 0..capacity-1.

    The full key is stored and compared, so two different keys can never be taken for one another.
    """

    def __init__(self, capacity: int, key_bytes: int) -> None:
        self.key_bytes = key_bytes
        self._words = -(-key_bytes // _WORD_BYTES)
        buckets = _BUCKETS_PER_SLOT << (capacity - 1).bit_length()
        self._bucket_mask = buckets - 1
        self._table = _Table(
            np.full((capacity, self._words), 0, np.uint64),
            np.full(buckets, ABSENT, np.int32),
            np.full((capacity, 2), ABSENT, np.int32),
        )
        # Scalar reads through a memoryview cost a third of those through an array.
        self._keys_view = self._table.keys.data.cast("B")
        self._links_view = self._table.links.data
        self._heads_view = self._table.heads.data

    def keys_of(self, slots: Slots) -> list[bytes]:
        """Return the keys that occupy `slots`, in that order."""
        return self.unpack(self.packed_keys_of(slots))

    def marks_of(self, slots: Slots) -> Marks:
        """Return the marks of the keys that occupy `slots`."""
        return marks(self._table.keys[slots])

    def packed_keys_of(self, slots: Slots) -> PackedKeys:
        """Return the keys that occupy `slots` without making an object of each, shape (slots, key bytes)."""
        return self._table.keys[slots].view(np.uint8)[:, : self.key_bytes]

    def unpack(self, keys: PackedKeys) -> list[bytes]:
        """Return keys that come as rows as objects; ValueError if their length is not the table's."""
        if keys.shape[1:] != (self.key_bytes,):
            raise ValueError(f"every key must have {self.key_bytes} bytes")
        # Void items become bytes in one call, and unlike those of type S keep zeros at their end.
        objects: list[bytes] = np.ascontiguousarray(keys).view(f"V{self.key_bytes}").ravel().tolist()
        return objects

    def batch(self, keys: Sequence[bytes]) -> KeyBatch:
        """Return `keys` as the other methods take them; ValueError if a length is not the table's."""
        flat = np.frombuffer(b"".join(keys), np.uint8)
        if flat.size != len(keys) * self.key_bytes:
            raise ValueError(f"every key must have {self.key_bytes} bytes")
        rows = np.zeros((len(keys), self._words * _WORD_BYTES), np.uint8)
        rows[:, : self.key_bytes] = flat.reshape(len(keys), self.key_bytes)
        # CPython hashes bytes with a keyed SipHash: even for any keys, and no client can aim at one bucket.
        hashes = np.fromiter(map(hash, keys), np.int64, len(keys))
        return KeyBatch(rows.view(np.uint64), hashes & self._bucket_mask)

    def find(self, batch: KeyBatch) -> Slots:
        """Return each key's slot, or ABSENT."""
        return _find(self._table, batch.words, batch.buckets)

    def find_one(self, key: bytes) -> int:
        """Return one key's slot, or ABSENT, without the cost of building a batch."""
        slot = self._heads_view[hash(key) & self._bucket_mask]
        row = self._words * _WORD_BYTES
        while slot >= 0:
            start = slot * row
            if self._keys_view[start : start + len(key)] == key:
                return slot
            slot = self._links_view[slot, _NEXT]
        return ABSENT

    def insert(self, slots: Slots, batch: KeyBatch, places: Places) -> None:
        """Put those keys of a batch that have these places in it into slots. None may be in the table."""
        _insert(self._table, slots, batch.words, batch.buckets, places)

    def remove(self, slots: Slots) -> None:
        """Take the keys in `slots` out of the table."""
        _remove(self._table, slots)

    def clear(self) -> None:
        """Forget every key."""
        self._table.heads.fill(ABSENT)


@compiled(_TABLE.keys)
def marks(words: Words) -> Marks:
    """Return the marks of keys. They are for what may take one key for another now and then."""
    hashes = np.empty(len(words), np.uint64)
    for place in range(len(words)):
        mark = np.uint64(0)
        for word in range(words.shape[1]):
            # The steps of MurmurHash3's 64-bit finalizer (Austin Appleby, SMHasher)
            mark = (mark ^ words[place, word]) * np.uint64(0xFF51AFD7ED558CCD)
            mark ^= mark >> np.uint64(33)
        hashes[place] = mark
    return hashes


@compiled(_TABLE, _TABLE.keys, _BUCKETS)
def _find(table: _Table, words: Words, buckets: Buckets) -> Slots:
    slots = np.empty(len(buckets), np.int32)
    for place, bucket in enumerate(buckets):  # in a loop of its own: memory is waited for many at a time
        slots[place] = table.heads[bucket]
    for place in range(len(slots)):
        slot = slots[place]
        while slot >= 0:
            same = True
            for word in range(words.shape[1]):
                same &= table.keys[slot, word] == words[place, word]
            if same:
                break
            slot = table.links[slot, _NEXT]
        slots[place] = slot
    return slots


@compiled(_TABLE, _TABLE.heads, _TABLE.keys, _BUCKETS, _BUCKETS)
def _insert(table: _Table, slots: Slots, words: Words, buckets: Buckets, places: Places) -> None:
    for slot, place in zip(slots, places):  # noqa: B905 - numba knows no `strict`
        for word in range(words.shape[1]):  # an assignment of rows takes five seconds to compile
            table.keys[slot, word] = words[place, word]
        bucket = buckets[place]
        behind = table.heads[bucket]
        table.heads[bucket] = slot
        table.links[slot, _NEXT] = behind
        table.links[slot, _PREVIOUS] = ~bucket
        if behind >= 0:
            table.links[behind, _PREVIOUS] = slot


@compiled(_TABLE, _TABLE.heads)
def _remove(table: _Table, slots: Slots) -> None:
    for slot in slots:
        before, behind = table.links[slot, _PREVIOUS], table.links[slot, _NEXT]
        if before < 0:
            table.heads[~before] = behind
        else:
            table.links[before, _NEXT] = behind
        if behind >= 0:
            table.links[behind, _PREVIOUS] = before
