"""The loops of eviction.py over many blocks, compiled. Why they do what they do is said there.

What is read of a slot, or of a ghost, is one row: most of the time goes into waiting for memory, and a row is
waited for once. All that compiled functions call or take as constant is in this file: see compiled.py.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kvtier_connector.core.compiled import compiled
from kvtier_connector.core.index.keytable import Marks, Slots

Rows = npt.NDArray[np.uint32]  # slots or ghosts, shape (capacity, columns)
Spans = npt.NDArray[np.uint32]  # times between uses in steps of age, or ONCE, shape (blocks,)
Depths = npt.NDArray[np.int64]  # places of blocks in their prompts, the root's being 0, shape (blocks,)
Order = npt.NDArray[np.int64]  # blocks with the smallest numbers leave first, shape (blocks,)
Counts = npt.NDArray[np.float64]  # blocks that were seen, shape (CLASSES, STEPS)
Ranks = npt.NDArray[np.int64]  # what blocks are worth in RANK_BITS bits, shape (CLASSES, STEPS)

# Columns of slots
USED_AT: Final = 0
SPAN: Final = 1
DEPTH: Final = 2
HOLDS: Final = 3
SLOT_COLUMNS: Final = 4
# Columns of ghosts: the first two of slots, and
PRINT: Final = 2  # bits of the mark that tell a ghost from others which could be in its place, or EMPTY
GHOST_COLUMNS: Final = 3
EMPTY: Final = 0

STEPS: Final = 28  # 14 octaves: to 256 times the capacity
STEPS_PER_OCTAVE: Final = 2
_STEPS_PER_CLASS: Final = 4
CLASSES: Final = 1 + STEPS // _STEPS_PER_CLASS
ONCE: Final = 255  # the span of a block that has been used once

RUN: Final = 8
"""Slots looked at in a row: they lie in the same cache lines, and their neighbours cost next to nothing."""
CLOCK_MASK: Final = (1 << 32) - 1
RANK_BITS: Final = 20
_AGE_BITS: Final = 27
_LARGEST_AGE: Final = (1 << _AGE_BITS) - 1
_DEPTH_BITS: Final = 16
_LARGEST_DEPTH: Final = (1 << _DEPTH_BITS) - 1


class EvictionState(NamedTuple):
    """What eviction knows."""

    slots: Rows  # shape (capacity, SLOT_COLUMNS)
    ghosts: Rows  # shape (capacity, GHOST_COLUMNS)
    # blocks that were used again, by how they were used before and the age that they had reached
    used: Counts
    lost: Counts  # blocks of which nothing more will be seen, likewise
    ranks: Ranks  # what blocks are worth, likewise
    per_unit: np.float32  # what an age in uses of blocks is multiplied by to get it in ReuseStatistics' units


class ScanPath(NamedTuple):
    """The order in which runs of slots are looked at: the first, the step to the next, and their number."""

    first: int
    step: int
    runs: int


_COUNTS = np.empty((0, 0))
_ROWS = np.empty((0, 0), np.uint32)
_STATE = EvictionState(_ROWS, _ROWS, _COUNTS, _COUNTS, np.empty((0, 0), np.int64), np.float32(0))
_SLOTS, _SPANS = np.empty(0, np.int32), np.empty(0, np.uint32)
_DEPTHS, _MARKS = np.empty(0, np.int64), np.empty(0, np.uint64)


@compiled()
def class_of(span: int) -> int:
    """Return the class of blocks with a span; 0 is that of those used once."""
    return 1 + span // _STEPS_PER_CLASS if span < STEPS else 0


@compiled()
def step_of(age: int, per_unit: np.float32) -> int:
    """Return the step of an age in uses of blocks: half octaves of one unit more than it has."""
    times = np.float32(age) * per_unit + np.float32(1)
    # The exponent of the square: a logarithm would take most of the time of a look at a slot.
    half_octaves = int(np.float32(times * times).view(np.int32) >> 23) - 127
    return min(half_octaves, STEPS - 1)


@compiled()
def _age(rows: Rows, at: int, clock: int) -> int:
    """Return the age of what is in a slot or of a ghost, in uses of blocks."""
    return int((clock - rows[at, USED_AT]) & CLOCK_MASK)


@compiled()
def _kind(rows: Rows, at: int, clock: int, per_unit: np.float32) -> tuple[int, int]:
    """Return the class and step of what is in a slot or of a ghost."""
    return class_of(rows[at, SPAN]), step_of(_age(rows, at, clock), per_unit)


@compiled()
def _count_use(state: EvictionState, rows: Rows, at: int, clock: int) -> int:
    """Count a block as used again; returns its new span."""
    span = rows[at, SPAN]
    kind = _kind(rows, at, clock, state.per_unit)
    state.used[kind] += 1
    # Slowly: one short time between two uses does not make a block popular.
    return kind[1] if span == ONCE else (3 * span + kind[1] + 2) >> 2


@compiled()
def _place(state: EvictionState, mark: np.uint64) -> tuple[int, np.uint64]:
    """Return a ghost's place and its print, which is never that of an empty place."""
    return int(mark % np.uint64(len(state.ghosts))), mark >> np.uint64(32) | np.uint64(1)


@compiled(_STATE, _SLOTS, 0)
def use(state: EvictionState, slots: Slots, clock: int) -> Spans:
    """Count blocks as used again; returns their new spans."""
    spans = np.empty(len(slots), np.uint32)
    for place, slot in enumerate(slots):
        spans[place] = _count_use(state, state.slots, slot, clock)
    return spans


@compiled(_STATE, _MARKS, 0)
def call_back(state: EvictionState, marks: Marks, clock: int) -> Spans:
    """Count blocks that come back and are ghosts no more; returns the spans of all that come."""
    spans = np.empty(len(marks), np.uint32)
    for place, mark in enumerate(marks):
        at, mark_print = _place(state, mark)
        spans[place] = ONCE
        if state.ghosts[at, PRINT] == mark_print:
            spans[place] = _count_use(state, state.ghosts, at, clock)
            state.ghosts[at, PRINT] = EMPTY
    return spans


@compiled(_STATE, _SLOTS, _SPANS, _DEPTHS, 0)
def renew(state: EvictionState, slots: Slots, spans: Spans, depths: Depths, clock: int) -> None:
    """Make blocks of one prompt, root to tail, as recent as can be, with these spans."""
    least = ONCE
    for place in range(len(slots) - 1, -1, -1):
        least = min(least, spans[place])  # a root is used whenever its tails are
        slot = slots[place]
        state.slots[slot, USED_AT] = clock
        state.slots[slot, SPAN] = least
        state.slots[slot, DEPTH] = min(depths[place], _LARGEST_DEPTH)


@compiled(_STATE, 0, ScanPath(0, 0, 0), 0, 0)
def look_at(
    state: EvictionState, clock: int, path: ScanPath, runs: int, wanted: int
) -> tuple[Slots, Order, int]:
    """Find slots without a hold in so many runs, and in more until as many are found as are wanted.

    Returns the slots, the order in which they should leave (by worth, of equal ones the oldest first, then
    tails), and the run to begin with next time.
    """
    rows = state.slots
    slots = np.empty(min(len(rows), wanted + runs * RUN) + 1, np.int32)
    count = looked_at = 0
    run = path.first
    while looked_at < runs or (count < wanted and looked_at < path.runs):
        # So little, and no branch on what is read, that the processor waits for many runs at a time.
        for slot in range(run * RUN, min((run + 1) * RUN, len(rows))):
            slots[count] = slot
            count += rows[slot, HOLDS] == 0
        run = (run + path.step) % path.runs
        looked_at += 1
    order = np.empty(count, np.int64)
    for place, slot in enumerate(slots[:count]):
        age = min(_age(rows, slot, clock), _LARGEST_AGE)
        rank = state.ranks[_kind(rows, slot, clock, state.per_unit)]
        leaves = rank << _AGE_BITS | _LARGEST_AGE - age
        order[place] = leaves << _DEPTH_BITS | _LARGEST_DEPTH - rows[slot, DEPTH]
    return slots[:count], order, run


@compiled(_STATE, _SLOTS, _MARKS, 0)
def bury(state: EvictionState, slots: Slots, marks: Marks, clock: int) -> None:
    """Make ghosts of blocks. Where one stands already, that is lost sight of which is worth less."""
    rows, ghosts, per_unit = state.slots, state.ghosts, state.per_unit
    for place, slot in enumerate(slots):
        at, mark_print = _place(state, marks[place])
        if ghosts[at, PRINT] != EMPTY:
            new, old = _kind(rows, slot, clock, per_unit), _kind(ghosts, at, clock, per_unit)
            if state.ranks[new] < state.ranks[old]:
                state.lost[new] += 1
                continue
            state.lost[old] += 1
        ghosts[at, USED_AT] = rows[slot, USED_AT]
        ghosts[at, SPAN] = rows[slot, SPAN]
        ghosts[at, PRINT] = mark_print
