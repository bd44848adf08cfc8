"""Kernels of precise holders: the pod says what it stored and removed, and nothing is evicted here.

A pod may remove a block and keep what follows it, or store a block whose predecessor nobody told us of. The
block that is missing then stays as a *ghost*: known, not held, gone with the last block that follows it. So
every block that is held leads through `parent` to the first of its prompt, or to a ghost that tells of a
hole; a holder without ghosts has no holes.
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
    IndexArrays,
)
from kvtier_scorer.index.table import add, find, link, remove


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
