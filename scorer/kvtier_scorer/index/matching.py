"""The kernel that finds how much of a prompt each pod holds in each tier.

What a holder has of a prompt is a run from its first block, so its length is found by bisection. All holders
take each step together: their reads of memory do not wait for each other, which is most of the time. Many
holders have the same run (a system prompt), so the first steps ask for the run of a holder that is already
known. Most others have none of the prompt, which one question settles.
"""

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.index.compiled import compiled, compiled_part
from kvtier_scorer.index.layout import (
    FIRST,
    GHOSTS,
    NONE,
    PARENT,
    SLOT_WORDS,
    SLOTS,
    TIERS,
    IndexArrays,
)
from kvtier_scorer.index.precise import is_ghost
from kvtier_scorer.index.table import find, find_all, link

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
    found = np.empty(active, np.int64)
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
        find_all(memory, holders[:active], keys[:active], found[:active], work)
        left = 0
        for i in range(active):
            here = found[i] != NONE
            if here and memory.holders[holders[i], GHOSTS]:
                here = not is_ghost(memory, found[i])
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
