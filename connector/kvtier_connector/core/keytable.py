"""A hash table from block keys to slots in flat arrays: no Python object per entry, no rehash pause.

Separate chaining (Knuth, The Art of Computer Programming, vol. 3, 6.4) with the links, in both directions,
held in the slots themselves. All arrays are sized once from the capacity and written at once (np.full, where
np.zeros would leave the page faults to later calls), so no operation ever grows, moves or first touches them.
Every step works on a whole batch of keys, because one vectorised operation costs about as much as one key.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt

Slots = npt.NDArray[np.int32]
PackedKeys = npt.NDArray[np.uint8]
"""Keys as rows, shape (keys, key bytes)."""

ABSENT: Final = -1
_WORD_BYTES: Final = 8
_BUCKETS_PER_SLOT: Final = 2
"""Chains of half a key on average: most walks end after one step, for 4 to 8 bytes a slot."""


@dataclass(frozen=True, slots=True)
class KeyBatch:
    """Keys ready for the table.

    Args:
        words: the keys as rows of 64-bit words, zero-padded, shape (keys, words).
        hashes: of the keys.
        buckets: the bucket that each belongs to.
    """

    words: npt.NDArray[np.uint64]
    hashes: npt.NDArray[np.int64]
    buckets: npt.NDArray[np.int64]

    def __getitem__(self, places: npt.NDArray[np.intp]) -> Self:
        words, hashes, buckets = self.words[places], self.hashes[places], self.buckets[places]
        return replace(self, words=words, hashes=hashes, buckets=buckets)


def key_hashes(keys: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """Return keys' hashes, shape (keys,). They differ between processes."""
    # CPython hashes bytes with a keyed SipHash: even for any keys, and no client can aim at one bucket.
    return np.fromiter(map(hash, keys), np.int64, len(keys))


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
        # The slot before, or, of a chain's first, the bucket's complement: a key leaves without being hashed.
        self._previous = np.full(capacity, ABSENT, np.int32)
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

    def packed_keys_of(self, slots: Slots) -> PackedKeys:
        """Return the keys that occupy `slots` without making an object of each, shape (slots, key bytes)."""
        return self._keys[slots].view(np.uint8)[:, : self.key_bytes]

    def unpacked(self, keys: PackedKeys) -> list[bytes]:
        """Return keys that come as rows as objects.

        Raises:
            ValueError: the keys have another length than the table's.
        """
        if keys.shape[1:] != (self.key_bytes,):
            raise ValueError(f"every key must have {self.key_bytes} bytes")
        # Void items become bytes in one call, and unlike those of type S keep zeros at their end.
        objects: list[bytes] = np.ascontiguousarray(keys).view(f"V{self.key_bytes}").ravel().tolist()
        return objects

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
        hashes = key_hashes(keys)
        return KeyBatch(rows.view(np.uint64), hashes, hashes & self._bucket_mask)

    def find(self, batch: KeyBatch) -> Slots:
        """Return each key's slot, or ABSENT."""
        found = np.full(len(batch.buckets), ABSENT, np.int32)
        candidates = self._heads[batch.buckets]
        pending = np.flatnonzero(candidates >= 0)
        candidates = candidates[pending]
        while pending.size:
            same = self._keys[candidates, 0] == batch.words[pending, 0]
            if same.any():  # what differs in the first word, as nearly all do, needs no second look
                alike = same.nonzero()[0]
                same[alike] = (self._keys[candidates[alike]] == batch.words[pending[alike]]).all(axis=1)
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
        buckets = batch.buckets
        self._keys[slots] = batch.words
        behind = self._heads[buckets]
        self._heads[buckets] = slots
        if (shared := self._heads[buckets] != slots).any():
            # Of several keys in one bucket one became the head; the others come before it in turn.
            self._link(slots[~shared], buckets[~shared], behind[~shared])
            self.insert(slots[shared], batch[shared.nonzero()[0]])
        else:
            self._link(slots, buckets, behind)

    def _link(self, slots: Slots, buckets: npt.NDArray[np.int64], behind: Slots) -> None:
        self._next[slots] = behind
        self._previous[slots] = ~buckets
        followed = behind >= 0
        self._previous[behind[followed]] = slots[followed]

    def remove(self, slots: Slots) -> None:
        """Take the keys in `slots` out of the table."""
        self._leaving[slots] = True
        before = self._staying(self._previous, slots)
        behind = self._staying(self._next, slots)
        self._leaving[slots] = False
        # Neighbours in a chain that leave together have the same two ends and write the same links.
        is_head = before < 0
        self._heads[~before[is_head]] = behind[is_head]
        self._next[before[~is_head]] = behind[~is_head]
        followed = behind >= 0
        self._previous[behind[followed]] = before[followed]

    def _staying(self, links: Slots, slots: Slots) -> Slots:
        """Follow links until they end or come to a key that stays."""
        ends = links[slots]
        while (leaving := (ends >= 0) & self._leaving.take(ends, mode="clip")).any():
            ends[leaving] = links[ends[leaving]]
        return ends

    def clear(self) -> None:
        """Forget every key."""
        self._heads.fill(ABSENT)
