"""Kernels: what precise holders stored and removed, and how many blocks of a prompt each holder has.

A precise pod says what it holds, and nothing is evicted here. It may remove a block and keep what follows
it, or store a block whose predecessor nobody told us of. The block that is missing then stays as a *ghost*:
known, not held, gone with the last block that follows it. So every block that is held leads through `parent`
to the first of its prompt, or to a ghost that tells of a hole; a holder without ghosts has no holes.
"""

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.index.compiled import compiled, compiled_part
from kvtier_scorer.index.layout import (
    CAPACITY,
    CHILDREN,
    ENTRIES,
    FIRST,
    GHOST,
    GHOSTS,
    NONE,
    PARENT,
    SLOT_WORDS,
    SLOTS,
    TIERS,
    IndexArrays,
)
from kvtier_scorer.index.table import add, find, find_all, link, remove


@compiled_part
def is_ghost(memory: IndexArrays, entry: int) -> bool:
    """Whether the entry of a precise holder is known only as what others follow."""
    return link(memory, entry * SLOT_WORDS + CHILDREN) >= GHOST


@compiled
def store_blocks(
    memory: IndexArrays, holder: int, hashes: NDArray[np.uint64], parent: np.uint64, first: bool
) -> int:
    """The pod stored these blocks, each following the one before, the first one following `parent`.

    Returns how many were dropped because the holder is full. `first`: there is no parent.
    """
    before = FIRST if first else _entry_of(memory, holder, parent)
    stuck = before
    kept = 0
    while kept < len(hashes) and before != NONE:
        entry = _entry_of(memory, holder, hashes[kept])
        if entry == NONE:
            break
        _adopt(memory, holder, before, entry)
        before = entry
        kept += 1
    if kept == 0 and stuck < FIRST:
        _settle(memory, holder, stuck)
    return len(hashes) - kept


@compiled
def remove_blocks(memory: IndexArrays, holder: int, hashes: NDArray[np.uint64]) -> None:
    """The pod removed these blocks; what it does not have is passed over."""
    for i in range(len(hashes)):
        entry = find(memory, holder, hashes[i])
        if entry != NONE and not is_ghost(memory, entry):
            memory.words[entry * SLOT_WORDS + CHILDREN] |= np.uint32(GHOST)
            memory.holders[holder, GHOSTS] += 1
            _settle(memory, holder, entry)


@compiled_part
def _entry_of(memory: IndexArrays, holder: int, key: np.uint64) -> int:
    """The key's entry, a new ghost with an unknown parent where there was none, or NONE if it is full."""
    entry = find(memory, holder, key)
    if entry != NONE or memory.holders[holder, ENTRIES] >= memory.holders[holder, CAPACITY]:
        return entry
    entry = add(memory, holder, key)
    if entry != NONE:
        memory.words[entry * SLOT_WORDS + PARENT] = NONE
        memory.words[entry * SLOT_WORDS + CHILDREN] = GHOST
        memory.holders[holder, GHOSTS] += 1
    return entry


@compiled_part
def _adopt(memory: IndexArrays, holder: int, before: int, entry: int) -> None:
    """The entry is held, and follows `before`."""
    if not is_ghost(memory, entry):
        return
    memory.words[entry * SLOT_WORDS + CHILDREN] &= np.uint32(GHOST - 1)
    memory.holders[holder, GHOSTS] -= 1
    if memory.words[entry * SLOT_WORDS + PARENT] == NONE:
        memory.words[entry * SLOT_WORDS + PARENT] = before
        if before < FIRST:
            memory.words[before * SLOT_WORDS + CHILDREN] += np.uint32(1)


@compiled_part
def _settle(memory: IndexArrays, holder: int, entry: int) -> None:
    """Remove a ghost that nothing follows any more, and so on towards the first block."""
    while entry < FIRST and memory.words[entry * SLOT_WORDS + CHILDREN] == GHOST:
        parent = link(memory, entry * SLOT_WORDS + PARENT)
        remove(memory, holder, entry)
        memory.holders[holder, GHOSTS] -= 1
        if parent < FIRST:
            memory.words[parent * SLOT_WORDS + CHILDREN] -= np.uint32(1)
        entry = parent


# What a holder has of a prompt is a run from its first block, so its length is found by bisection. All take
# each step together: their reads of memory do not wait for each other, which is most of the time. Many have
# the same run (a system prompt), so the first steps ask for the run of a holder that is already known. Most
# others have none of the prompt, which one question settles.
_LEADERS = 4  # so many holders are searched alone, and the others asked for their length


@compiled
def match(
    memory: IndexArrays, hashes: NDArray[np.uint64], pods: NDArray[np.int32], lengths: NDArray[np.int32]
) -> None:
    """Write into `lengths`, shape (tiers, pods), how many blocks from the first each holder has.

    Pods that the index does not know have none.
    """
    lengths[:] = 0
    cells = np.empty(TIERS * len(pods), np.int64)
    holders = np.empty(TIERS * len(pods), np.int64)
    active = _not_empty(memory, pods, cells, holders) if len(hashes) else 0
    low = np.zeros(active, np.int64)
    high = np.full(active, len(hashes))
    asked = np.zeros(active, np.int64)
    entries = np.empty(active, np.int64)
    keys = np.empty(active, np.uint64)
    work = np.empty(active, np.int64)
    flat = lengths.reshape(-1)
    turn = 0
    run = 0
    while active:
        if turn < 2 * _LEADERS:
            # Two questions settle a holder with the leader's run, is its last block there, is the next not,
            # and one that has nothing.
            leads = turn & 1 == 0
            run = _length(memory, hashes, holders[0], low[0], high[0]) if leads else run
            for i in range(active):
                asked[i] = min(max(run - leads, low[i]), high[i] - 1) if leads or run < high[i] else low[i]
        else:
            for i in range(active):
                asked[i] = (low[i] + high[i]) >> 1
        for i in range(active):
            keys[i] = hashes[asked[i]]
        find_all(memory, holders[:active], keys[:active], entries[:active], work)
        left = 0
        for i in range(active):
            here = entries[i] != NONE
            if here and memory.holders[holders[i], GHOSTS]:
                here = not is_ghost(memory, entries[i])
            low[left] = asked[i] + 1 if here else low[i]
            high[left] = high[i] if here else asked[i]
            holders[left], cells[left] = holders[i], cells[i]
            if low[left] < high[left]:
                left += 1
            else:
                flat[cells[left]] = _length_to_hole(memory, hashes, holders[left], low[left])
        active = left
        turn += 1


@compiled_part
def _not_empty(
    memory: IndexArrays, pods: NDArray[np.int32], cells: NDArray[np.int64], holders: NDArray[np.int64]
) -> int:
    """List the holders that have anything, and where their lengths belong."""
    known = len(memory.holders) // TIERS
    active = 0
    for tier in range(TIERS):
        for i in range(len(pods)):
            if 0 <= pods[i] < known:
                holder = pods[i] * TIERS + tier
                cells[active] = tier * len(pods) + i
                holders[active] = holder
                active += memory.holders[holder, SLOTS] > 0
    return active


@compiled_part
def _length(memory: IndexArrays, hashes: NDArray[np.uint64], holder: int, low: int, high: int) -> int:
    """Bisect one holder: block `low - 1` is there, block `high` is not."""
    if low < high and _holds(memory, holder, hashes[high - 1]):
        return high
    while low < high:
        middle = (low + high) >> 1
        if _holds(memory, holder, hashes[middle]):
            low = middle + 1
        else:
            high = middle
    return low


@compiled_part
def _holds(memory: IndexArrays, holder: int, key: np.uint64) -> bool:
    entry = find(memory, holder, key)
    if entry == NONE or memory.holders[holder, GHOSTS] == 0:
        return entry != NONE
    return not is_ghost(memory, entry)


@compiled_part
def _length_to_hole(memory: IndexArrays, hashes: NDArray[np.uint64], holder: int, length: int) -> int:
    """The length as bisected, cut at the first hole where the holder has holes."""
    while length and memory.holders[holder, GHOSTS]:
        hole = length
        depth = length - 1
        entry = find(memory, holder, hashes[depth])
        while depth:
            entry = link(memory, entry * SLOT_WORDS + PARENT)
            if entry >= FIRST:
                break
            depth -= 1
            if is_ghost(memory, entry):
                hole = depth
        if depth == 0:
            return hole
        # The blocks before `depth` are not linked to it: search among them.
        length = _length(memory, hashes, holder, 0, min(hole, depth))
    return length
