"""A hash table from block keys to slots in flat arrays: no Python object per entry, no rehash pause.

Chained hashing (Knuth, The Art of Computer Programming, vol. 3, 6.4, algorithm C) with the links held in the
slots themselves. All arrays are sized once from the capacity and written at once (np.full, where np.zeros
would leave the page faults to later calls), so no operation ever grows, moves or first touches them.
Every step works on a whole batch of keys, because one vectorised operation costs about as much as one key.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt

Slots = npt.NDArray[np.int32]

ABSENT: Final = -1
_WORD_BYTES: Final = 8
_BUCKETS_PER_SLOT: Final = 2
"""Chains of half a key on average: most walks end after one step, for 4 to 8 bytes a slot."""


@dataclass(frozen=True, slots=True)
class KeyBatch:
    """Keys ready for the table.

    Args:
        words: the keys as rows of 64-bit words, zero-padded, shape (keys, words).
        buckets: the bucket that each belongs to.
    """

    words: npt.NDArray[np.uint64]
    buckets: npt.NDArray[np.int64]

    def __getitem__(self, places: npt.NDArray[np.intp]) -> Self:
        return replace(self, words=self.words[places], buckets=self.buckets[places])


class KeyTable:
    """Maps keys of one fixed length to slots 0..capacity-1.

    The full key is stored and compared, so two different keys can never be taken for one another.

    Args:
        capacity: number of slots.
        key_bytes: length of every key.
    """

    def __init__(self, capacity: int, key_bytes: int) -> None:
        self.key_bytes = key_bytes
        self._words = -(-key_bytes // _WORD_BYTES)
        buckets = _BUCKETS_PER_SLOT << (capacity - 1).bit_length()
        self._bucket_mask = buckets - 1
        self._keys = np.full((capacity, self._words), 0, np.uint64)
        self._next = np.full(capacity, ABSENT, np.int32)
        self._heads = np.full(buckets, ABSENT, np.int32)
        self._leaving = np.full(capacity, 0, np.bool_)
        # Scalar reads through a memoryview cost a third of those through an array.
        self._keys_view = self._keys.data.cast("B")
        self._next_view = self._next.data
        self._heads_view = self._heads.data

    def keys_of(self, slots: Slots) -> list[bytes]:
        """Return the keys that occupy `slots`, in that order."""
        size, row = self.key_bytes, self._words * _WORD_BYTES
        flat = self._keys[slots].tobytes()
        return [flat[start : start + size] for start in range(0, len(flat), row)]

    def batch(self, keys: Sequence[bytes]) -> KeyBatch:
        """Return `keys` in the form that the other methods take.

        Raises:
            ValueError: a key has another length than the table's.
        """
        flat = np.frombuffer(b"".join(keys), np.uint8)
        if flat.size != len(keys) * self.key_bytes:
            raise ValueError(f"every key must have {self.key_bytes} bytes")
        rows = np.zeros((len(keys), self._words * _WORD_BYTES), np.uint8)
        rows[:, : self.key_bytes] = flat.reshape(len(keys), self.key_bytes)
        return KeyBatch(rows.view(np.uint64), self._buckets(keys))

    def find(self, batch: KeyBatch) -> Slots:
        """Return each key's slot, or ABSENT."""
        found = np.full(len(batch.buckets), ABSENT, np.int32)
        candidates = self._heads[batch.buckets]
        pending = np.flatnonzero(candidates >= 0)
        candidates = candidates[pending]
        while pending.size:
            same = (self._keys[candidates] == batch.words[pending]).all(axis=1)
            found[pending[same]] = candidates[same]
            candidates = self._next[candidates]
            unresolved = ~same & (candidates >= 0)
            pending, candidates = pending[unresolved], candidates[unresolved]
        return found

    def find_one(self, key: bytes) -> int:
        """Return one key's slot, or ABSENT, without the cost of building a batch."""
        slot = self._heads_view[hash(key) & self._bucket_mask]
        row = self._words * _WORD_BYTES
        while slot >= 0:
            start = slot * row
            if self._keys_view[start : start + len(key)] == key:
                return slot
            slot = self._next_view[slot]
        return ABSENT

    def insert(self, slots: Slots, batch: KeyBatch) -> None:
        """Put keys into slots. Neither may be in the table, nor occur twice in the batch."""
        self._keys[slots] = batch.words
        order = np.argsort(batch.buckets)
        buckets, slots = batch.buckets[order], slots[order]
        # Keys of the batch that share a bucket are chained to one another, the first to the old head.
        opens = np.empty(len(slots), np.bool_)
        opens[:1] = True
        np.not_equal(buckets[1:], buckets[:-1], out=opens[1:])
        behind = np.empty_like(slots)
        behind[1:] = slots[:-1]
        behind[opens] = self._heads[buckets[opens]]
        self._next[slots] = behind
        closes = np.empty(len(slots), np.bool_)
        closes[-1:] = True
        closes[:-1] = opens[1:]
        self._heads[buckets[closes]] = slots[closes]

    def remove(self, slots: Slots, keys: Sequence[bytes]) -> None:
        """Take the keys in `slots` out of the table; `keys` are those keys."""
        self._leaving[slots] = True
        buckets = np.sort(self._buckets(keys))
        buckets = buckets[np.concatenate(([True], buckets[1:] != buckets[:-1]))]
        cursor = self._heads[buckets]
        self._heads[buckets] = ABSENT
        tail = np.full(len(buckets), ABSENT, np.int32)
        # Walk all affected chains one link at a time, relinking what stays. Buckets are distinct, so no two
        # rows of the batch write the same place.
        while cursor.size:
            following = self._next[cursor]
            stays = ~self._leaving[cursor]
            first, later = stays & (tail < 0), stays & (tail >= 0)
            self._heads[buckets[first]] = cursor[first]
            self._next[tail[later]] = cursor[later]
            tail[stays] = cursor[stays]
            self._next[cursor[stays]] = ABSENT
            more = following >= 0
            cursor, buckets, tail = following[more], buckets[more], tail[more]
        self._leaving[slots] = False

    def clear(self) -> None:
        """Forget every key."""
        self._heads.fill(ABSENT)

    def _buckets(self, keys: Sequence[bytes]) -> npt.NDArray[np.int64]:
        # CPython hashes bytes with a keyed SipHash: even for any keys, and no client can aim at one bucket.
        return np.fromiter(map(hash, keys), np.int64, len(keys)) & self._bucket_mask
