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
Shares = npt.NDArray[np.int64]  # numbers of slots by tenant, shape (SHARE_ROWS, tenants)

# Columns of slots
USED_AT: Final = 0
SPAN: Final = 1  # in its lowest bits; then whose the slot is, and the depth: `span_of` and so on read them
HOLDS: Final = 2
HINT: Final = 3  # what was promised of the slot, in its lowest bits, and until when
SLOT_COLUMNS: Final = 4
SPAN_MASK: Final = (1 << 8) - 1
TENANT_SHIFT: Final = 8
TENANT_MASK: Final = (1 << 8) - 1 << TENANT_SHIFT
DEPTH_SHIFT: Final = 16
# What may be promised
NONE: Final = 0
LOW: Final = 1  # to leave first
NORMAL: Final = 2  # to be worth as much as what is used once until the time is over. It and HIGH are retained
HIGH: Final = 3  # to leave after others until the time is over
PROMISE_MASK: Final = 3
UNTIL_SHIFT: Final = 2
LARGEST_TICK: Final = (1 << 32 - UNTIL_SHIFT) - 1
# Rows of shares
HELD: Final = 0  # slots that are a tenant's
GUARANTEED: Final = 1  # slots that no other's store takes from it
MOST: Final = 2  # slots beyond which its own leave first
SHARE_ROWS: Final = 3
NOBODY: Final = 0
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
_AGE_BITS: Final = 24  # three give way for the level's
_LARGEST_AGE: Final = (1 << _AGE_BITS) - 1
_DEPTH_BITS: Final = 16
_LARGEST_DEPTH: Final = (1 << _DEPTH_BITS) - 1
# Levels, in the order of leaving; worth decides within one
_FIRST: Final = 0  # of low priority, or beyond what its tenant should have at most
_ORDINARY: Final = 1
_OWN: Final = 2  # of the guaranteed part of who stores, if that is full
_LAST: Final = 3  # of high priority
_OWN_LACKING: Final = 4  # of the guaranteed part of who stores, if that is not full
_LEVEL_SHIFT: Final = RANK_BITS + _AGE_BITS + _DEPTH_BITS
_BELOW_LEVEL: Final = (1 << _LEVEL_SHIFT) - 1


class EvictionState(NamedTuple):
    """What eviction knows."""

    slots: Rows  # shape (capacity, SLOT_COLUMNS)
    ghosts: Rows  # shape (capacity, GHOST_COLUMNS)
    # blocks that were used again, by how they were used before and the age that they had reached
    used: Counts
    lost: Counts  # blocks of which nothing more will be seen, likewise
    ranks: Ranks  # what blocks are worth, likewise
    per_unit: np.float32  # what an age in uses of blocks is multiplied by to get it in ReuseStatistics' units


class Moment(NamedTuple):
    """What eviction knows of the present."""

    clock: int  # in uses of blocks
    tick: int  # in ticks of the time until which slots are promised
    uses_per_tick: float  # of blocks, by what was seen; more than 0


class Storer(NamedTuple):
    """For whom room is made. Without tenants, all is nobody's and shares are not looked at."""

    has_tenants: bool
    tenant: int
    incoming: int  # slots that it is about to take


class ScanPath(NamedTuple):
    """The order in which runs of slots are looked at: the first, the step to the next, and their number."""

    first: int
    step: int
    runs: int


_COUNTS = np.empty((0, 0))
_ROWS = np.empty((0, 0), np.uint32)
_STATE = EvictionState(_ROWS, _ROWS, _COUNTS, _COUNTS, np.empty((0, 0), np.int64), np.float32(0))
_SHARES = np.empty((0, 0), np.int64)
_PATH, _MOMENT, _STORER = ScanPath(0, 0, 0), Moment(0, 0, 1.0), Storer(False, 0, 0)  # noqa: FBT003 - a tuple's
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
def span_of(rows: Rows, at: int) -> int:
    """Return the span of what is in a slot or of a ghost."""
    return int(np.int64(rows[at, SPAN])) & SPAN_MASK  # an int of an unsigned number is unsigned in numba


@compiled()
def tenant_of(rows: Rows, slot: int) -> int:
    """Return whose a slot is."""
    return (int(np.int64(rows[slot, SPAN])) & TENANT_MASK) >> TENANT_SHIFT


@compiled()
def _promised(rows: Rows, slot: int) -> tuple[int, int]:
    """Return what is promised of a slot, and until when."""
    hint = int(np.int64(rows[slot, HINT]))
    return hint & PROMISE_MASK, hint >> UNTIL_SHIFT


@compiled()
def _age(rows: Rows, at: int, clock: int) -> int:
    """Return the age of what is in a slot or of a ghost, in uses of blocks."""
    return int((clock - rows[at, USED_AT]) & CLOCK_MASK)


@compiled()
def _kind(rows: Rows, at: int, clock: int, per_unit: np.float32) -> tuple[int, int]:
    """Return the class and step of what is in a slot or of a ghost."""
    return class_of(span_of(rows, at)), step_of(_age(rows, at, clock), per_unit)


@compiled()
def _count_use(state: EvictionState, rows: Rows, at: int, clock: int) -> int:
    """Count a block as used again; returns its new span."""
    span = span_of(rows, at)
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
        whose = state.slots[slot, SPAN] & TENANT_MASK
        state.slots[slot, USED_AT] = clock
        state.slots[slot, SPAN] = least | whose | min(depths[place], _LARGEST_DEPTH) << DEPTH_SHIFT


@compiled()
def _find(rows: Rows, path: ScanPath, runs: int, wanted: int) -> tuple[Slots, int]:
    """Find slots without a hold."""
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
    return slots[:count], run


@compiled()
def _find_with_tenants(  # noqa: PLR0913, PLR0917 - what decides
    rows: Rows, shares: Shares, path: ScanPath, storer: Storer, runs: int, wanted: int
) -> tuple[Slots, int]:
    """Find slots without a hold, and so many that as many as are wanted are of nobody's guaranteed part.

    Who stores more than it should have at most has to give up its own for that, however few those are.
    """
    tenants = shares.shape[1]
    beyond = np.empty(tenants, np.int64)  # of each, what may be taken from it
    for tenant in range(tenants):
        beyond[tenant] = max(0, shares[HELD, tenant] - shares[GUARANTEED, tenant])
    beyond[storer.tenant] = len(rows)
    own = shares[HELD, storer.tenant]
    own_wanted = min(wanted, own, own + storer.incoming - shares[MOST, storer.tenant])
    found = np.zeros(tenants, np.int64)
    slots = np.empty(len(rows) + 1, np.int32)
    count = looked_at = may_leave = 0
    run = path.first
    while looked_at < path.runs and (
        looked_at < runs or may_leave < wanted or found[storer.tenant] < own_wanted
    ):
        for slot in range(run * RUN, min((run + 1) * RUN, len(rows))):
            if rows[slot, HOLDS] == 0:
                tenant = tenant_of(rows, slot)
                slots[count] = slot
                count += 1
                found[tenant] += 1
                may_leave += found[tenant] <= beyond[tenant]
        run = (run + path.step) % path.runs
        looked_at += 1
    return slots[:count].copy(), run


@compiled()
def _order_of(state: EvictionState, slots: Slots, now: Moment) -> Order:
    """Return the order in which slots should leave, whosever they are."""
    rows = state.slots
    order = np.empty(len(slots), np.int64)
    for place, slot in enumerate(slots):
        age = min(_age(rows, slot, now.clock), _LARGEST_AGE)
        rank = state.ranks[_kind(rows, slot, now.clock, state.per_unit)]
        level = _ORDINARY
        promised, until = _promised(rows, slot)
        if promised == LOW:
            level = _FIRST
        elif promised != NONE and until > now.tick:
            # Used once in the time that is left, at the latest: of many, those stay that come back soonest.
            worth = np.float32(1 / ((until - now.tick) * now.uses_per_tick))
            rank = max(rank, np.int64(worth.view(np.int32)) >> (31 - RANK_BITS))
            if promised == HIGH:
                level = _LAST
        leaves = (level << RANK_BITS | rank) << _AGE_BITS | _LARGEST_AGE - age
        depth = np.int64(rows[slot, SPAN]) >> DEPTH_SHIFT
        order[place] = leaves << _DEPTH_BITS | _LARGEST_DEPTH - depth
    return order


@compiled()
def _by_tenant(rows: Rows, shares: Shares, storer: Storer, slots: Slots, order: Order) -> tuple[Slots, Order]:
    """Return the slots that may leave and their order, by what each tenant would have left."""
    beyond_most, beyond_guaranteed = shares[HELD] - shares[MOST], shares[HELD] - shares[GUARANTEED]
    lacks = beyond_guaranteed[storer.tenant] < 0
    beyond_most[storer.tenant] += storer.incoming
    beyond_guaranteed[storer.tenant] += storer.incoming
    leaving = np.empty(len(slots), np.int32)
    new_order = np.empty(len(slots), np.int64)
    count = 0
    for place in np.argsort(order):
        tenant = tenant_of(rows, slots[place])
        level = order[place] >> _LEVEL_SHIFT
        if beyond_most[tenant] > 0:
            level = _FIRST
        elif beyond_guaranteed[tenant] <= 0 and tenant != storer.tenant:
            continue
        elif beyond_guaranteed[tenant] <= 0:
            level = _OWN_LACKING if lacks else max(level, _OWN)
        beyond_most[tenant] -= 1
        beyond_guaranteed[tenant] -= 1
        leaving[count] = slots[place]
        new_order[count] = level << _LEVEL_SHIFT | order[place] & _BELOW_LEVEL
        count += 1
    return leaving[:count], new_order[:count]


@compiled(_STATE, _SHARES, _MOMENT, _PATH, _STORER, 0, 0)
def look_at(  # noqa: PLR0913, PLR0917 - what decides
    state: EvictionState, shares: Shares, now: Moment, path: ScanPath, storer: Storer, runs: int, wanted: int
) -> tuple[Slots, Order, int]:
    """Find slots that may leave in so many runs, and in more until as many are found as are wanted.

    Returns the slots, the order in which they should leave (by level, by worth, of equal ones the oldest
    first, then tails), and the run to begin with next time.
    """
    if storer.has_tenants:
        slots, run = _find_with_tenants(state.slots, shares, path, storer, runs, wanted)
    else:
        slots, run = _find(state.slots, path, runs, wanted)
    order = _order_of(state, slots, now)
    if storer.has_tenants:
        slots, order = _by_tenant(state.slots, shares, storer, slots, order)
    return slots, order, run


@compiled(_ROWS, _SHARES, _SLOTS, 0, 0)
def take(rows: Rows, shares: Shares, slots: Slots, tenant: int, hint: int) -> None:
    """Make slots that were nobody's a tenant's, of which is said to leave first (LOW) or NONE."""
    for slot in slots:
        rows[slot, SPAN] = rows[slot, SPAN] & ~TENANT_MASK | tenant << TENANT_SHIFT
        rows[slot, HINT] = hint
    shares[HELD, tenant] += len(slots)


@compiled(_ROWS, _SHARES, _SLOTS)
def let_go(rows: Rows, shares: Shares, slots: Slots) -> int:
    """Make slots nobody's, and forget what they were promised; returns how many were retained."""
    retained = 0
    for slot in slots:
        shares[HELD, tenant_of(rows, slot)] -= 1
        retained += _promised(rows, slot)[0] >= NORMAL
        rows[slot, SPAN] &= ~TENANT_MASK
        rows[slot, HINT] = NONE
    return retained


@compiled(_ROWS, _SHARES, _SLOTS, 0, 0)
def reuse(rows: Rows, shares: Shares, slots: Slots, tenant: int, hint: int) -> int:
    """Have slots be used by a request that promises nothing; returns how many are retained no more.

    What was nobody's becomes the tenant's. With a low hint they lose what they were promised, without any
    those are like all others that were to leave first.
    """
    withdrawn = 0
    for slot in slots:
        promised = _promised(rows, slot)[0]
        if hint == LOW and promised >= NORMAL:
            rows[slot, HINT] = NONE
            withdrawn += 1
        elif hint != LOW and promised == LOW:
            rows[slot, HINT] = NONE
        if tenant != NOBODY and tenant_of(rows, slot) == NOBODY:
            rows[slot, SPAN] |= tenant << TENANT_SHIFT
            shares[HELD, NOBODY] -= 1
            shares[HELD, tenant] += 1
    return withdrawn


@compiled(_ROWS, _SLOTS)
def count_retained(rows: Rows, slots: Slots) -> int:
    """Return how many of some slots are counted as retained, their time being over or not."""
    retained = 0
    for slot in slots:
        retained += _promised(rows, slot)[0] >= NORMAL
    return retained


@compiled(_ROWS, _SLOTS, 0, 0, 0, 0)
def retain(  # noqa: PLR0913, PLR0917 - what decides
    rows: Rows, slots: Slots, promise: int, until: int, tick: int, room: int
) -> tuple[int, int]:
    """Promise NORMAL or HIGH of slots, root to tail, of which so many more may be retained.

    What was promised stays where it is more. Returns how many were added and how many were not granted.
    """
    added = refused = 0
    for slot in slots:
        before, end = _promised(rows, slot)
        new_end = until
        if before >= NORMAL and end > tick:
            if before > promise:
                continue
            if before == promise:
                new_end = max(end, until)
        if before < NORMAL:
            if added >= room:
                refused += 1
                continue
            added += 1
        rows[slot, HINT] = new_end << UNTIL_SHIFT | promise
    return added, refused


@compiled(_ROWS, _PATH, 0, 0, 0, 0, 0)
def withdraw(  # noqa: PLR0913, PLR0917 - what decides
    rows: Rows, path: ScanPath, runs: int, wanted: int, promise: int, until: int, tick: int
) -> tuple[int, int]:
    """Take promises back in so many runs: all whose time is over, then up to as many as are wanted.

    Those are of slots without a hold and promised less: of lower priority, or until later. NONE is less than
    any. Returns how many were taken back, and the run to begin with next time.
    """
    weaker = np.empty(runs * RUN, np.int32)
    weakness = np.empty(runs * RUN, np.int64)
    count = withdrawn = 0
    run = path.first
    for _ in range(runs):
        for slot in range(run * RUN, min((run + 1) * RUN, len(rows))):
            before, end = _promised(rows, slot)
            if before < NORMAL:
                continue
            if end <= tick:
                rows[slot, HINT] = NONE
                withdrawn += 1
            elif rows[slot, HOLDS] == 0 and (before < promise or (before == promise and end > until)):
                weaker[count] = slot
                weakness[count] = (before << 32) - end
                count += 1
        run = (run + path.step) % path.runs
    for place in np.argsort(weakness[:count])[: max(0, wanted - withdrawn)]:
        rows[weaker[place], HINT] = NONE
        withdrawn += 1
    return withdrawn, run


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
        ghosts[at, SPAN] = span_of(rows, slot)
        ghosts[at, PRINT] = mark_print
