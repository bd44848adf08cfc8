"""What the tier holds: block key -> slot, with eviction, in-flight protection and failure.

A block is pending (its store is in flight), ready, or bad (a transfer of it failed). Only ready blocks are
read, and only ready blocks that no load reads are evicted.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import compress

import numpy as np
import numpy.typing as npt

from kvtier_connector.core.index.eviction import EvictionOrder
from kvtier_connector.core.index.hints import ALL_FOR_ALL, BlockHint, Sharing
from kvtier_connector.core.index.keytable import ABSENT, KeyTable, PackedKeys, Slots, marks

_RESTORED_AT_ONCE = 4096
"""Keys whose Python objects, which hashing needs, exist at the same time: half a megabyte."""
_MAY_BE_KEPT = 64
"""Blocks that eviction passes over at the caller's wish, at least: it looks at twice as many as it needs and
these, so that a prompt that fills the tier costs no search through all of it."""


class BlockState(IntEnum):
    """What is known of a key. BAD is a block that must not be read and goes away with its last transfer."""

    ABSENT = 0
    PENDING = 1
    READY = 2
    BAD = 3


@dataclass(frozen=True, slots=True)
class Reservation:
    """Slots given to blocks that are about to be stored."""

    # the keys that were given a slot, in the order asked, without those that the tier has already
    keys: list[bytes]
    slots: Slots  # their slots
    evicted: list[bytes]  # the keys that had to leave


class FreeSlots:
    """A stack of slot numbers: 0..capacity-1 are free at first, and are taken in that order."""

    def __init__(self, capacity: int) -> None:
        self._slots: Slots = np.arange(capacity - 1, -1, -1, dtype=np.int32)
        self.count = capacity

    def take(self, count: int) -> Slots:
        """Take as many slots as that; there are so many."""
        self.count -= count
        taken: Slots = self._slots[self.count : self.count + count][::-1].copy()
        return taken

    def add(self, slots: Slots | Sequence[int]) -> None:
        """Let slots be taken again, the last of them first."""
        self._slots[self.count : self.count + len(slots)] = slots
        self.count += len(slots)

    def replace(self, slots: Slots) -> None:
        """Let these slots be taken and no others, the first of them first."""
        self._slots[: len(slots)] = slots[::-1]
        self.count = len(slots)

    def remove(self, slots: Slots) -> None:
        """Keep those of the slots that are free from being taken."""
        self.replace(np.setdiff1d(self._slots[: self.count], slots))


_STATES = tuple(BlockState)  # indexing is several times faster than BlockState(value)
# numpy compares with a plain number four times faster than with a member of an enumeration.
_PENDING, _READY, _BAD = int(BlockState.PENDING), int(BlockState.READY), int(BlockState.BAD)


class BlockIndex:
    """The index of one tier of `capacity` blocks. Not thread-safe: one thread owns it.

    Keys within one call must be distinct. Lists of keys run from a prompt's root to its tail: of the blocks
    that one call uses, tails are evicted before roots, as a prefix without its root is worth nothing. Which
    prompts' blocks are evicted, eviction.py decides.

    A hint that comes with keys is an opinion of them: see BlockHint. How much hints may hold, and what
    the tenants' parts are, `sharing` says. No store takes blocks from another tenant's guaranteed part.
    """

    def __init__(
        self,
        capacity: int,
        key_bytes: int,
        *,
        sharing: Sharing = ALL_FOR_ALL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacity = capacity
        self.key_bytes = key_bytes
        self._table = KeyTable(capacity, key_bytes)
        self._order = EvictionOrder(capacity, sharing, clock)
        self._holdings = self._order.holdings
        self._withheld = 0
        self._may_have_strays = False
        self._state = np.full(capacity, BlockState.ABSENT, np.uint8)
        # Of what is in a slot: its readers, and one more if it is not ready. What has none may be evicted.
        self._holds = self._order.holds
        self._free = FreeSlots(capacity)
        self._evictable_count = 0
        self._state_view = self._state.data
        # The slots of stores in flight: their end needs no search.
        self._pending: dict[bytes, int] = {}

    @property
    def used(self) -> int:
        """Number of occupied slots."""
        return self.capacity - self._free.count

    @property
    def reservable(self) -> int:
        """Number of blocks that could be reserved now, by evicting whatever may be, whosever it is."""
        return self._free.count + self._evictable_count

    @property
    def retained(self) -> int:
        """Number of blocks that hints alone keep, also those whose time was over a little while ago."""
        return self._holdings.kept

    @property
    def is_weighed(self) -> bool:
        """Whether anything is said of any block, or tenants have parts."""
        return self._holdings.is_weighed

    @property
    def promised(self) -> int:
        """Number of evictable blocks that hints would keep, which takes a look at all slots."""
        return self._holdings.promised

    @property
    def not_granted(self) -> int:
        """Number of blocks, since the start, that left although a hint was to keep them."""
        return self._holdings.broken

    @property
    def held_by_tenant(self) -> dict[str, int]:
        """Number of occupied slots of each tenant; nobody's are under the empty name."""
        return self._holdings.held()

    def keys_of_tenant(self, tenant: str) -> list[bytes]:
        """Return the keys of all blocks of a tenant, in no order; none if there is no such tenant."""
        return self._table.keys_of(self._holdings.slots_of(tenant))

    def expect_strays(self) -> None:
        """Take note that blocks come of which it is not known whose they are: they are nobody's here."""
        self._may_have_strays = True

    @property
    def may_have_strays(self) -> bool:
        """Whether blocks that are nobody's may be a tenant's."""
        return self._may_have_strays

    def keys_of_nobody(self) -> list[bytes]:
        """Return the keys of all blocks that are no tenant's, in no order."""
        slots = self._holdings.slots_of_nobody()
        return self._table.keys_of(slots[self._state[slots] != BlockState.ABSENT])

    def sweep(self) -> None:
        """Keep some blocks no more whose time is over: for who reads `retained` where nothing is stored."""
        self._holdings.sweep()

    @property
    def free(self) -> int:
        """Number of blocks that could be reserved now without any leaving."""
        return self._free.count

    def state(self, key: bytes) -> BlockState:
        """Return what is known of one key."""
        slot = self._table.find_one(key)
        return BlockState.ABSENT if slot < 0 else _STATES[self._state_view[slot]]

    def reserve(
        self,
        keys: Sequence[bytes],
        *,
        keep: Callable[[bytes], object] | None = None,
        hint: BlockHint | None = None,
    ) -> Reservation:
        """Give slots to the keys that the tier lacks, evicting the blocks that are least worth as needed.

        Keys go from root to tail. Those that it has are counted as used. Where there are not enough slots for
        all, the first ones get them. What `keep` tells something of must stay, and others leave in its place.
        """
        batch = self._table.batch(keys)
        places = self._table.find(batch)
        here = (places >= 0).nonzero()[0]
        present = here[self._state[places[here]] == _READY]
        used = places[present]
        self._order.use(used, present, hint)
        lacking = (places < 0).nonzero()[0]
        if not len(lacking):
            return Reservation([], places[:0], [])
        spans = self._order.spans_of(marks(batch.words[lacking]))
        evicted: list[bytes] = []
        if (short := len(lacking) - self._free.count) > 0:
            self._begin_reads(used)  # lest they leave for those that they are asked for with
            evicted = self._evict(short, keep, hint, len(lacking))
            self._end_reads(used, 1)

        lacking = lacking[: self._free.count]
        new = [keys[place] for place in lacking.tolist()]
        slots = self._free.take(len(new))
        self._table.insert(slots, batch, lacking)
        self._state[slots] = BlockState.PENDING
        self._order.insert(slots, spans[: len(slots)], lacking, hint)
        self._pending.update(zip(new, slots.tolist(), strict=True))
        return Reservation(new, slots, evicted)

    def commit(self, keys: Sequence[bytes]) -> list[bytes]:
        """End the stores of pending keys, in any order; returns those that became ready. Bad ones leave."""
        slots = np.fromiter(map(self._pending.pop, keys), np.int32, len(keys))
        state = self._state[slots]
        ready, bad = slots[state == _PENDING], slots[state == _BAD]
        self._state[ready] = BlockState.READY
        self._holds[ready] = 0
        self._evictable_count += len(ready)
        self._release(bad[self._holds[bad] == 1])
        return list(compress(keys, (state == _PENDING).tolist()))

    def pin(self, keys: Sequence[bytes], hint: BlockHint | None = None) -> Slots:
        """Protect ready keys, root to tail, from eviction until as many `unpin`s, and count them as used.

        Returns their slots. Raises KeyError: a key is not ready.
        """
        slots = self.hold(keys)
        self._order.use(slots, np.arange(len(slots)), hint)
        return slots

    def hold(self, keys: Sequence[bytes]) -> Slots:
        """Protect ready keys like `pin`, but not for a use. Any order. Raises KeyError: one is not ready."""
        slots = self._slots_of(keys)
        if not (self._state[slots] == _READY).all():
            raise KeyError("a block that is not ready cannot be protected")
        self._begin_reads(slots)
        return slots

    def unpin(self, keys: Sequence[bytes]) -> None:
        """Undo one `pin` or `hold` of each key. Any order."""
        self._end_reads(self._slots_of(keys), 1)

    def unpin_slots(self, slots: Slots) -> None:
        """Undo `pin`s and `hold`s by the slots that those returned, without a search. Any order."""
        self._end_reads(*np.unique(slots, return_counts=True))

    def lacking(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return those of the keys that are not here at all, in their order."""
        absent = self._table.find(self._table.batch(keys)) == ABSENT
        return list(compress(keys, absent.tolist()))

    def touch(self, keys: Sequence[bytes], hint: BlockHint | None = None) -> None:
        """Make a prompt's keys, root to tail, as recent as can be, without counting them as used again.

        Those that the tier lacks are passed over. A request whose prompt was loaded, or stored in several
        parts, does this when it ends, so that what was used by one request is equally old.
        """
        slots = self._table.find(self._table.batch(keys))
        present = (slots >= 0).nonzero()[0]
        self._order.refresh(slots[present], present, hint)

    def invalidate(self, keys: Sequence[bytes]) -> list[bytes]:
        """Make keys unreadable at once, and return those that were readable.

        Their slots are reused when no transfer uses them any more.
        """
        slots = self._table.find(self._table.batch(keys))
        slots = slots[slots >= 0]
        was_ready = self._state[slots] == _READY
        lost = self._table.keys_of(slots[was_ready])
        self._holds[slots[was_ready]] += 1
        idle = slots[was_ready & (self._holds[slots] == 1)]
        self._evictable_count -= len(idle)
        self._state[slots] = BlockState.BAD
        self._release(idle)
        return lost

    def in_use(self) -> Slots:
        """Return the slots of blocks that something fills or reads, which a `clear` would forget."""
        return np.flatnonzero((self._state != BlockState.ABSENT) & (self._holds > 0)).astype(np.int32)

    def clear(self) -> None:
        """Forget every block, also those in flight."""
        self._table.clear()
        self._order.clear()
        self._may_have_strays = False
        self._evictable_count = 0
        self._state.fill(BlockState.ABSENT)
        self._pending.clear()
        self._holds.fill(1)
        self._free = FreeSlots(self.capacity)
        self._count_withheld(0)

    def withhold(self, slots: Slots) -> None:
        """Keep free slots out of use, because something outside still reads or writes them."""
        before = self._free.count
        self._free.remove(slots)
        self._count_withheld(self._withheld + before - self._free.count)

    def give_back(self, slots: Sequence[int]) -> None:
        """Let slots that were withheld be used again."""
        self._free.add(slots)
        self._count_withheld(self._withheld - len(slots))

    def _count_withheld(self, withheld: int) -> None:
        self._withheld = withheld
        self._holdings.resize(self.capacity - withheld)

    def restore(self, keys: PackedKeys, slots: Slots) -> None:
        """Fill an empty index with ready blocks that lie in given slots already; the first are evicted first.

        Of several slots with one key the last keeps it and the others are free. Keys have the shape (blocks,
        key bytes), slots (blocks,). Raises ValueError: the index is not empty, a slot is given twice or not
        the tier's, or a key has another length than this index's.
        """
        if self.used:
            raise ValueError("only an empty index can be restored")
        if len(slots) and not 0 <= slots.min() <= slots.max() < self.capacity:
            raise ValueError(f"a restored slot is not one of the tier's {self.capacity}")
        if len(np.unique(slots)) < len(slots):
            raise ValueError("a slot cannot be restored to two keys")
        # From the last to the first, so that what is there already is what stays.
        for end in range(len(slots), 0, -_RESTORED_AT_ONCE):
            part = slice(max(0, end - _RESTORED_AT_ONCE), end)
            self._restore_lacking(keys[part], slots[part])
        restored = slots[self._state[slots] == _READY]
        self._may_have_strays = len(restored) > 0
        self._order.restore(restored)
        self._evictable_count = len(restored)
        self._free.replace(np.flatnonzero(self._state == BlockState.ABSENT).astype(np.int32))

    def keys(self) -> list[bytes]:
        """Return the keys of all blocks that are here, also of those in flight, in no order."""
        return self._table.keys_of(np.flatnonzero(self._state != BlockState.ABSENT).astype(np.int32))

    def places(self, keys: Sequence[bytes]) -> dict[bytes, int]:
        """Return the slots of those of the keys that are here at all."""
        slots = self._table.find(self._table.batch(keys))
        return {key: slot for key, slot in zip(keys, slots.tolist(), strict=True) if slot >= 0}

    def rows(self, first: int, last: int) -> tuple[Slots, PackedKeys]:
        """Return the slots from `first` up to `last` that are ready, and their keys: part of a snapshot.

        Any thread may call it. What the owner changes meanwhile may be seen or not, down to a key of which
        only a part is new; whoever reads blocks by such rows has to check that they are the key's.
        """
        ready = np.flatnonzero(self._state[first:last] == _READY)
        slots = (ready + first).astype(np.int32)
        return slots, self._table.packed_keys_of(slots)

    def newest(self, most: int) -> list[bytes]:
        """Return the keys of up to `most` ready blocks, those used last first, of one use roots before tails.

        After `restore`, those stored last count as used last.
        """
        ready = np.flatnonzero(self._state == _READY).astype(np.int32)
        return self._table.keys_of(self._order.newest(ready, most))

    def _restore_lacking(self, keys: PackedKeys, slots: Slots) -> None:
        """Add blocks whose keys are not there yet; of one key that comes several times the last."""
        slot_of = dict(zip(self._table.unpack(keys), slots.tolist(), strict=True))
        batch = self._table.batch(list(slot_of))
        lacking = np.flatnonzero(self._table.find(batch) == ABSENT)
        added = np.fromiter(slot_of.values(), np.int32, len(slot_of))[lacking]
        self._table.insert(added, batch, lacking)
        self._state[added] = BlockState.READY
        self._holds[added] = 0

    def _evict(
        self, wanted: int, keep: Callable[[bytes], object] | None, hint: BlockHint | None, incoming: int
    ) -> list[bytes]:
        """Make up to `wanted` slots free, for as many to come; returns their keys."""
        wanted = min(wanted, self._evictable_count)
        if wanted <= 0:
            return []
        looked_at = wanted if keep is None else min(self._evictable_count, 2 * wanted + _MAY_BE_KEPT)
        chosen = self._order.worst(looked_at, hint, incoming)
        slots, staying, passed = chosen.slots, chosen.slots[:0], chosen.passed
        if keep is None:
            keys = self._table.keys_of(slots)
        else:
            places, keys = self._may_leave(slots, keep, wanted)
            reached = places[-1] + 1 if len(places) == wanted else len(slots)
            staying = np.delete(slots[:reached], places)
            passed = passed[: chosen.passed_before[reached - 1]] if reached else passed
            slots = slots[places]
        self._holdings.keep(passed, slots, staying)
        self._order.remember(slots, self._table.marks_of(slots))
        self._evictable_count -= len(slots)
        self._release(slots)
        return keys

    def _may_leave(
        self, slots: Slots, keep: Callable[[bytes], object], wanted: int
    ) -> tuple[list[int], list[bytes]]:
        """Return the places of the first `wanted` slots that nothing keeps, and their keys."""
        places, keys = list[int](), list[bytes]()
        for first in range(0, len(slots), wanted):  # mostly none is kept, and the rest need not be looked at
            for place, key in enumerate(self._table.keys_of(slots[first : first + wanted]), first):
                if not keep(key):
                    places.append(place)
                    keys.append(key)
                    if len(places) == wanted:
                        return places, keys
        return places, keys

    def _begin_reads(self, slots: Slots) -> None:
        """Add a reader to each of some distinct slots that are ready."""
        if len(slots):
            self._evictable_count -= int((self._holds[slots] == 0).sum())
            self._holds[slots] += 1

    def _end_reads(self, slots: Slots, times: int | npt.NDArray[np.int64]) -> None:
        """Take so many readers off each of some distinct slots."""
        if not len(slots):
            return
        self._holds[slots] -= times
        left = self._holds[slots]
        self._evictable_count += int((left == 0).sum())
        one = slots[left == 1]
        self._release(one[self._state[one] == _BAD])

    def _slots_of(self, keys: Sequence[bytes]) -> Slots:
        slots = self._table.find(self._table.batch(keys))
        if (slots == ABSENT).any():
            raise KeyError("a block that is in flight has left the index")
        return slots

    def _release(self, slots: Slots) -> None:
        if not len(slots):
            return
        self._table.remove(slots)
        self._holdings.let_go(slots)
        self._state[slots] = BlockState.ABSENT
        self._holds[slots] = 1
        self._free.add(slots[::-1])


class WithheldSlots:
    """Slots that hold nothing any more and may not be filled yet, by who still uses them.

    Workers say once that all of their copies have ended. The disk's transfers end one by one.
    """

    def __init__(self) -> None:
        self._by_workers = set[int]()
        self._by_disk = set[int]()

    def reset(self, *, by_workers: Iterable[int], by_disk: Iterable[int]) -> Slots:
        """Take note of another reset, and return all slots that may not be filled.

        Of those that workers' copies use, earlier resets' may still be in use, too; the disk's are all that
        there are.
        """
        self._by_workers.update(by_workers)
        self._by_disk = set(by_disk)
        return np.array(sorted(self._by_workers | self._by_disk), np.int32)

    def take_freed_by_workers(self) -> list[int]:
        """Return the slots that may be filled now that no copy of before the reset is left."""
        free = self._by_workers - self._by_disk
        self._by_workers.clear()
        return sorted(free)

    def take_freed_by_disk(self, slots: Iterable[int]) -> list[int]:
        """Return which of these slots, that the disk uses no more, may be filled now."""
        ended = list(slots)
        self._by_disk.difference_update(ended)
        return [slot for slot in ended if slot not in self._by_workers]
