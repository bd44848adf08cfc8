"""Kernels of approximate holders: a request that is sent somewhere leaves its blocks there, exact LRU.

The entries of a holder form one list in order of use. A request puts its whole path at the newer end, its
first block newest; so at any time a block is newer than every block that follows it in any prompt, tails are
evicted before roots, and what is held of a prompt is always a run from its first block.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.index.compiled import compiled, compiled_part
from kvtier_scorer.index.layout import (
    CAPACITY,
    ENTRIES,
    KEY,
    NEWER,
    NEWEST,
    NONE,
    OLDER,
    OLDEST,
    PRECISE,
    SLOT_KEYS,
    SLOT_WORDS,
    SLOTS,
    TIERS,
    IndexArrays,
)
from kvtier_scorer.index.table import add, clear, find, find_all, link, remove


class WorkArrays(NamedTuple):
    """Room to work in, one number for each block of a request."""

    places: NDArray[np.int64]
    holders: NDArray[np.int64]
    entries: NDArray[np.int64]
    order: NDArray[np.int64]
    keys: NDArray[np.uint64]


@compiled
def assume_stored(memory: IndexArrays, pod: int, hashes: NDArray[np.uint64]) -> None:
    """A request with these blocks was sent to the pod: every approximate tier of it has them now."""
    work = _work_arrays(len(hashes))
    for holder in range(pod * TIERS, pod * TIERS + TIERS):
        count = min(len(hashes), memory.holders[holder, CAPACITY])
        if count and not memory.holders[holder, PRECISE]:
            _refresh(memory, holder, hashes[:count], work)


@compiled
def resize(memory: IndexArrays, holder: int, capacity: int) -> None:
    """Set the capacity; the newest entries stay, and slots beyond it are given up."""
    memory.holders[holder, CAPACITY] = capacity
    while memory.holders[holder, ENTRIES] > capacity:
        _evict(memory, holder)
    if memory.holders[holder, SLOTS] <= capacity:
        return
    kept = np.empty(memory.holders[holder, ENTRIES], np.uint64)
    entry = memory.holders[holder, NEWEST]
    for i in range(len(kept)):
        kept[i] = memory.keys[entry * SLOT_KEYS + KEY]
        entry = link(memory, entry * SLOT_WORDS + OLDER)
    clear(memory, holder)
    if len(kept):
        _refresh(memory, holder, kept, _work_arrays(len(kept)))


@compiled
def _work_arrays(count: int) -> WorkArrays:
    """Room for `count` blocks."""
    numbers = np.empty((4, count), np.int64)
    return WorkArrays(numbers[0], numbers[1], numbers[2], numbers[3], np.empty(count, np.uint64))


@compiled_part
def _refresh(memory: IndexArrays, holder: int, hashes: NDArray[np.uint64], work: WorkArrays) -> None:
    """Make these the newest, the first one newest of all. There are not more of them than the capacity."""
    places = work.places[: len(hashes)]
    known = _walk(memory, holder, hashes, places)
    missing = _look_up(memory, holder, hashes[known:], places[known:], work)
    _touch(memory, holder, places)
    if missing:
        surplus = memory.holders[holder, ENTRIES] + missing - memory.holders[holder, CAPACITY]
        if surplus > 0:
            _read_ahead(memory, holder, surplus, work)
        _insert(memory, holder, hashes, places)


@compiled_part
def _walk(memory: IndexArrays, holder: int, hashes: NDArray[np.uint64], places: NDArray[np.int64]) -> int:
    """Write the first blocks' entries into `places`, up to one that has none; return how many have one."""
    guess = NONE
    for i in range(len(hashes)):
        # Whoever used the block before most likely used this one too.
        if guess == NONE or memory.keys[guess * SLOT_KEYS + KEY] != hashes[i]:
            guess = find(memory, holder, hashes[i])
            if guess == NONE:
                return i
        places[i] = guess
        guess = link(memory, guess * SLOT_WORDS + OLDER)
    return len(hashes)


@compiled_part
def _look_up(
    memory: IndexArrays, holder: int, hashes: NDArray[np.uint64], places: NDArray[np.int64], work: WorkArrays
) -> int:
    """Write each hash's entry or NONE into `places`; return how many have none."""
    if memory.holders[holder, SLOTS] == 0:
        places[:] = NONE
    else:
        holders = work.holders[: len(hashes)]
        holders[:] = holder
        find_all(memory, holders, hashes, places, work.order)
    missing = 0
    for i in range(len(places)):
        missing += places[i] == NONE
    return missing


@compiled_part
def _read_ahead(memory: IndexArrays, holder: int, count: int, work: WorkArrays) -> None:
    """Bring what evicting the oldest entries will read into the CPU's cache, all at once."""
    keys = work.keys[: min(count, memory.holders[holder, ENTRIES])]
    entry = memory.holders[holder, OLDEST]
    for i in range(len(keys)):
        keys[i] = memory.keys[entry * SLOT_KEYS + KEY]
        entry = link(memory, entry * SLOT_WORDS + NEWER)
    holders, entries = work.holders[: len(keys)], work.entries[: len(keys)]
    holders[:] = holder
    find_all(memory, holders, keys, entries, work.order)


@compiled_part
def _touch(memory: IndexArrays, holder: int, places: NDArray[np.int64]) -> None:
    """Move entries to the newer end, keeping their order. Runs that are together already move as one."""
    last = len(places) - 1
    while last >= 0:
        tail = places[last]
        first = last
        if tail != NONE:
            while first > 0 and places[first - 1] != NONE:
                if memory.words[places[first - 1] * SLOT_WORDS + OLDER] != places[first]:
                    break
                first -= 1
            _unlink(memory, holder, places[first], tail)
            _link(memory, holder, NONE, places[first], tail)
        last = first - 1


@compiled_part
def _insert(memory: IndexArrays, holder: int, hashes: NDArray[np.uint64], places: NDArray[np.int64]) -> None:
    """Add what has no entry, each just behind the block before it, and evict as many as do not fit."""
    before = NONE
    for i in range(len(hashes)):
        if places[i] == NONE:
            # A hash can be new twice where the caller's hashes are no chain.
            entry = find(memory, holder, hashes[i])
            if entry == NONE:
                entry = _add_evicting(memory, holder, hashes[i], before)
                if entry == NONE:
                    return
                _link(memory, holder, before, entry, entry)
            places[i] = entry
        before = places[i]


@compiled_part
def _add_evicting(memory: IndexArrays, holder: int, key: np.uint64, before: int) -> int:
    if memory.holders[holder, ENTRIES] >= memory.holders[holder, CAPACITY]:
        _evict(memory, holder)
    entry = add(memory, holder, key)
    # NONE only where the machine's memory is used up; then what is older than this request makes way.
    if entry == NONE and memory.holders[holder, OLDEST] != before:
        _evict(memory, holder)
        entry = add(memory, holder, key)
    return entry


@compiled_part
def _evict(memory: IndexArrays, holder: int) -> None:
    entry = memory.holders[holder, OLDEST]
    _unlink(memory, holder, entry, entry)
    remove(memory, holder, entry)


@compiled_part
def _unlink(memory: IndexArrays, holder: int, first: int, last: int) -> None:
    """Take the run `first` to `last` out of the list."""
    newer = link(memory, first * SLOT_WORDS + NEWER)
    older = link(memory, last * SLOT_WORDS + OLDER)
    if newer == NONE:
        memory.holders[holder, NEWEST] = older
    else:
        memory.words[newer * SLOT_WORDS + OLDER] = older
    if older == NONE:
        memory.holders[holder, OLDEST] = newer
    else:
        memory.words[older * SLOT_WORDS + NEWER] = newer


@compiled_part
def _link(memory: IndexArrays, holder: int, before: int, first: int, last: int) -> None:
    """Put the run `first` to `last` behind `before`, or at the newer end where that is NONE."""
    if before == NONE:
        older = memory.holders[holder, NEWEST]
        memory.holders[holder, NEWEST] = first
    else:
        older = link(memory, before * SLOT_WORDS + OLDER)
        memory.words[before * SLOT_WORDS + OLDER] = first
    memory.words[first * SLOT_WORDS + NEWER] = before
    memory.words[last * SLOT_WORDS + OLDER] = older
    if older == NONE:
        memory.holders[holder, OLDEST] = last
    else:
        memory.words[older * SLOT_WORDS + NEWER] = last
