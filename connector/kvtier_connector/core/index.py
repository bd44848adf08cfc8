"""What the tier holds: block key -> slot, with eviction, in-flight protection and failure.

A block is pending (its store is in flight), ready, or bad (a transfer of it failed). Only ready blocks are
read, and only ready blocks that no load reads are evicted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import compress

import numpy as np

from kvtier_connector.core.keytable import ABSENT, KeyTable, Slots
from kvtier_connector.core.recency import RecencyList


class BlockState(IntEnum):
    """What is known of a key. BAD is a block that must not be read and goes away with its last transfer."""

    ABSENT = 0
    PENDING = 1
    READY = 2
    BAD = 3


_STATES = tuple(BlockState)  # indexing is several times faster than BlockState(value)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Slots given to blocks that are about to be stored.

    Args:
        keys: the keys that were given a slot, in the order asked, without those that the tier has already.
        slots: their slots.
        evicted: the keys that had to leave.
    """

    keys: list[bytes]
    slots: Slots
    evicted: list[bytes]


class BlockIndex:
    """The index of one tier of `capacity` blocks. Not thread-safe: one thread owns it.

    Keys within one call must be distinct. Lists of keys run from a prompt's root to its tail: of the blocks
    that one call touches, tails are evicted before roots, as a prefix without its root is worth nothing.
    """

    def __init__(self, capacity: int, key_bytes: int) -> None:
        self.capacity = capacity
        self.key_bytes = key_bytes
        self._table = KeyTable(capacity, key_bytes)
        self._recency = RecencyList(capacity)
        self._state = np.full(capacity, BlockState.ABSENT, np.uint8)
        self._readers = np.full(capacity, 0, np.int32)
        self._free = np.arange(capacity - 1, -1, -1, dtype=np.int32)
        self._free_count = capacity
        self._state_view = self._state.data
        # The slots of stores in flight: their end needs no search.
        self._pending: dict[bytes, int] = {}

    @property
    def used(self) -> int:
        """Number of occupied slots."""
        return self.capacity - self._free_count

    def state(self, key: bytes) -> BlockState:
        """Return what is known of one key."""
        slot = self._table.find_one(key)
        return BlockState.ABSENT if slot < 0 else _STATES[self._state_view[slot]]

    def reserve(self, keys: Sequence[bytes], *, keep: Callable[[bytes], bool] | None = None) -> Reservation:
        """Give slots to the keys that the tier lacks, evicting the least recently used blocks as needed.

        Keys that it has are only touched. Where there is not room for all, the first ones get it.

        Args:
            keys: root to tail.
            keep: tells of a key whether it must stay; eviction stops at the first that must.
        """
        batch = self._table.batch(keys)
        found = self._table.find(batch)
        lacking, present = np.flatnonzero(found < 0), found[found >= 0]
        self._touch(present)
        evictable = self._recency.size - int(self._recency.holds(present).sum())
        wanted = min(len(lacking) - self._free_count, evictable)
        victims = self._recency.oldest(wanted)
        evicted = self._table.keys_of(victims)
        if keep is not None:
            stop = next((place for place, key in enumerate(evicted) if keep(key)), len(evicted))
            victims, evicted = victims[:stop], evicted[:stop]
        self._recency.remove_oldest(victims)
        self._release(victims)

        lacking = lacking[: self._free_count]
        new = [keys[place] for place in lacking.tolist()]
        slots = self._take(len(new))
        self._table.insert(slots, batch[lacking])
        self._state[slots] = BlockState.PENDING
        self._recency.rank(slots[::-1])
        self._pending.update(zip(new, slots.tolist(), strict=True))
        return Reservation(new, slots, evicted)

    def commit(self, keys: Sequence[bytes]) -> list[bytes]:
        """End the stores of pending keys: they become ready, or leave if they went bad. Any order.

        Returns:
            The keys that became ready.
        """
        slots = np.fromiter(map(self._pending.pop, keys), np.int32, len(keys))
        state = self._state[slots]
        ready, bad = slots[state == BlockState.PENDING], slots[state == BlockState.BAD]
        self._state[ready] = BlockState.READY
        self._recency.append_ranked(ready)
        self._release(bad[self._readers[bad] == 0])
        return list(compress(keys, (state == BlockState.PENDING).tolist()))

    def pin(self, keys: Sequence[bytes]) -> Slots:
        """Protect ready keys from eviction until as many `unpin`s; returns their slots.

        Raises:
            KeyError: a key is not ready.
        """
        slots = self._slots_of(keys)
        if not (self._state[slots] == BlockState.READY).all():
            raise KeyError("a block that is not ready cannot be pinned")
        self._recency.remove(slots[self._recency.holds(slots)])
        self._readers[slots] += 1
        self._recency.rank(slots[::-1])
        return slots

    def unpin(self, keys: Sequence[bytes]) -> None:
        """Undo one `pin` of each key. Any order."""
        slots = self._slots_of(keys)
        self._readers[slots] -= 1
        idle = slots[self._readers[slots] == 0]
        bad = self._state[idle] == BlockState.BAD
        self._recency.append_ranked(idle[~bad])
        self._release(idle[bad])

    def touch(self, keys: Sequence[bytes]) -> None:
        """Make keys the most recently used; those that the tier lacks are passed over."""
        slots = self._table.find(self._table.batch(keys))
        self._touch(slots[slots >= 0])

    def invalidate(self, keys: Sequence[bytes]) -> list[bytes]:
        """Make keys unreadable at once; their slots are reused when no transfer uses them any more.

        Returns:
            The keys that were readable until now.
        """
        slots = self._table.find(self._table.batch(keys))
        slots = slots[slots >= 0]
        was_ready = self._state[slots] == BlockState.READY
        lost = self._table.keys_of(slots[was_ready])
        in_flight = (self._state[slots] == BlockState.PENDING) | (self._readers[slots] > 0)
        self._recency.remove(slots[self._recency.holds(slots)])
        self._state[slots] = BlockState.BAD
        self._release(slots[~in_flight & was_ready])
        return lost

    def clear(self) -> None:
        """Forget every block, also those in flight."""
        self._table.clear()
        self._recency.clear()
        self._state.fill(BlockState.ABSENT)
        self._pending.clear()
        self._readers.fill(0)
        self._free[:] = np.arange(self.capacity - 1, -1, -1, dtype=np.int32)
        self._free_count = self.capacity

    def _slots_of(self, keys: Sequence[bytes]) -> Slots:
        slots = self._table.find(self._table.batch(keys))
        if (slots == ABSENT).any():
            raise KeyError("a block that is in flight has left the index")
        return slots

    def _touch(self, slots: Slots) -> None:
        if not len(slots):
            return
        idle = slots[self._recency.holds(slots)]
        self._recency.remove(idle)
        self._recency.append(idle[::-1])

    def _take(self, count: int) -> Slots:
        self._free_count -= count
        return self._free[self._free_count : self._free_count + count][::-1].copy()

    def _release(self, slots: Slots) -> None:
        if not len(slots):
            return
        self._table.remove(slots)
        self._state[slots] = BlockState.ABSENT
        self._free[self._free_count : self._free_count + len(slots)] = slots[::-1]
        self._free_count += len(slots)
