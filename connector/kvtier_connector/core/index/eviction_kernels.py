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
NORMAL: Final = 2  # to be kept until the time is over
HIGH: Final = 3  # to be kept before what is promised NORMAL
PROMISE_MASK: Final = 3
KEPT: Final = 1 << 2  # that the slot would have left, but for what was promised of it
UNTIL_SHIFT: Final = 3
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
_GHOST_HINTED: Final = 1 << 8  # in the span's column: something had been promised of the block

STEPS: Final = 28  # 14 octaves: to 256 times the capacity
STEPS_PER_OCTAVE: Final = 2
_STEPS_PER_CLASS: Final = 4
HINTED: Final = (
    1 + STEPS // _STEPS_PER_CLASS
)  # the class, behind those by span, of what was promised something
CLASSES: Final = HINTED + 1
ONCE: Final = 255  # the span of a block that has been used once

RUN: Final = 8
"""Slots looked at in a row: they lie in the same cache lines, and their neighbours cost next to nothing."""
CLOCK_MASK: Final = (1 << 32) - 1
_MOST_SEARCHED: Final = 4
"""So many times the runs that are looked at are searched, at most, for what tenants may lose: slots that may
not leave are passed over at a small part of the cost of weighing them."""
RANK_BITS: Final = 20
_AGE_BITS: Final = 26
_LARGEST_AGE: Final = (1 << _AGE_BITS) - 1
_DEPTH_BITS: Final = 16
_LARGEST_DEPTH: Final = (1 << _DEPTH_BITS) - 1
# Levels, in the order of leaving; worth decides within one
_FIRST: Final = 0  # of low priority
_ORDINARY: Final = 1
# From whom is taken, in turn
_BEYOND_MOST: Final = 0  # those that have more than they should have at most
_BEYOND_GUARANTEED: Final = 1  # those that have more than their guaranteed part
_OWN: Final = 2  # who stores
_SOURCES: Final = 3


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
_PATH, _MOMENT, _STORER = ScanPath(0, 0, 0), Moment(0, 0), Storer(False, 0, 0)  # noqa: FBT003 - a tuple's
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
def _slot_kind(rows: Rows, slot: int, clock: int, per_unit: np.float32) -> tuple[int, int]:
    """Return the class and step of what is in a slot."""
    is_hinted = rows[slot, HINT] & PROMISE_MASK >= NORMAL
    number = HINTED if is_hinted else class_of(span_of(rows, slot))
    return number, step_of(_age(rows, slot, clock), per_unit)


@compiled()
def _ghost_kind(ghosts: Rows, at: int, clock: int, per_unit: np.float32) -> tuple[int, int]:
    """Return the class and step of a ghost."""
    is_hinted = ghosts[at, SPAN] & _GHOST_HINTED != 0
    number = HINTED if is_hinted else class_of(span_of(ghosts, at))
    return number, step_of(_age(ghosts, at, clock), per_unit)


@compiled()
def _new_span(span: int, step: int) -> int:
    """Return the span of a block that is used again at that step of its age."""
    # Slowly: one short time between two uses does not make a block popular.
    return step if span == ONCE else (3 * span + step + 2) >> 2


@compiled()
def _place(state: EvictionState, mark: np.uint64) -> tuple[int, np.uint64]:
    """Return a ghost's place and its print, which is never that of an empty place."""
    return int(mark % np.uint64(len(state.ghosts))), mark >> np.uint64(32) | np.uint64(1)


@compiled(_STATE, _SLOTS, 0)
def use(state: EvictionState, slots: Slots, clock: int) -> Spans:
    """Count blocks as used again; returns their new spans."""
    spans = np.empty(len(slots), np.uint32)
    for place, slot in enumerate(slots):
        kind = _slot_kind(state.slots, slot, clock, state.per_unit)
        state.used[kind] += 1
        spans[place] = _new_span(span_of(state.slots, slot), kind[1])
    return spans


@compiled(_STATE, _MARKS, 0)
def call_back(state: EvictionState, marks: Marks, clock: int) -> Spans:
    """Count blocks that come back and are ghosts no more; returns the spans of all that come."""
    spans = np.empty(len(marks), np.uint32)
    for place, mark in enumerate(marks):
        at, mark_print = _place(state, mark)
        spans[place] = ONCE
        if state.ghosts[at, PRINT] == mark_print:
            kind = _ghost_kind(state.ghosts, at, clock, state.per_unit)
            state.used[kind] += 1
            spans[place] = _new_span(span_of(state.ghosts, at), kind[1])
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
    """Find slots without a hold, and of nobody's guaranteed part as many as are wanted, or as there are.

    Who stores more than it should have at most has to give up its own for that. The search for either has an
    end: of what is rare there may be less, and who stores then gets fewer slots, or others' beyond its most.
    """
    tenants = shares.shape[1]
    own = shares[HELD, storer.tenant]
    beyond = np.empty(tenants, np.int64)  # of each, what may be taken from it
    for tenant in range(tenants):
        beyond[tenant] = max(0, shares[HELD, tenant] - shares[GUARANTEED, tenant])
    beyond[storer.tenant] = own
    may_leave_wanted = min(wanted, beyond.sum())
    if may_leave_wanted <= 0:
        return np.empty(0, np.int32), path.first
    own_wanted = min(wanted, own, own + storer.incoming - shares[MOST, storer.tenant])
    most_runs = min(path.runs, _MOST_SEARCHED * runs)
    found = np.zeros(tenants, np.int64)
    slots = np.empty(min(len(rows), most_runs * RUN) + 1, np.int32)
    count = looked_at = may_leave = 0
    run = path.first
    while looked_at < most_runs and (
        looked_at < runs or may_leave < may_leave_wanted or found[storer.tenant] < own_wanted
    ):
        for slot in range(run * RUN, min((run + 1) * RUN, len(rows))):
            if rows[slot, HOLDS] == 0:
                tenant = tenant_of(rows, slot)
                found[tenant] += 1
                is_beyond = found[tenant] <= beyond[tenant]
                slots[count] = slot
                is_lacking = is_beyond if may_leave < may_leave_wanted else tenant == storer.tenant
                count += is_lacking or looked_at < runs
                may_leave += is_beyond
        run = (run + path.step) % path.runs
        looked_at += 1
    return slots[:count].copy(), run


@compiled()
def _order_of(state: EvictionState, slots: Slots, now: Moment) -> Order:
    """Return the order in which slots should leave, whosever they are and whatever was promised of them."""
    rows = state.slots
    order = np.empty(len(slots), np.int64)
    for place, slot in enumerate(slots):
        age = min(_age(rows, slot, now.clock), _LARGEST_AGE)
        rank = state.ranks[_slot_kind(rows, slot, now.clock, state.per_unit)]
        level = _FIRST if rows[slot, HINT] & PROMISE_MASK == LOW else _ORDINARY
        leaves = (level << RANK_BITS | rank) << _AGE_BITS | _LARGEST_AGE - age
        depth = np.int64(rows[slot, SPAN]) >> DEPTH_SHIFT
        order[place] = leaves << _DEPTH_BITS | _LARGEST_DEPTH - depth
    return order


@compiled(_STATE, _SHARES, _MOMENT, _PATH, _STORER, 0, 0)
def look_at(  # noqa: PLR0913, PLR0917 - what decides
    state: EvictionState, shares: Shares, now: Moment, path: ScanPath, storer: Storer, runs: int, wanted: int
) -> tuple[Slots, Order, int]:
    """Find slots without a hold in so many runs, and in more until as many may leave as are wanted.

    With tenants there is an end to how many more.

    Returns the slots, the order in which they should leave (by level, by worth, of equal ones the oldest
    first, then tails), and the run to begin with next time.
    """
    if storer.has_tenants:
        slots, run = _find_with_tenants(state.slots, shares, path, storer, runs, wanted)
    else:
        slots, run = _find(state.slots, path, runs, wanted)
    return slots, _order_of(state, slots, now), run


@compiled()
def _is_over(rows: Rows, slot: int, tick: int) -> bool:
    """Whether nothing is promised of a slot any more."""
    promised, until = _promised(rows, slot)
    return promised < NORMAL or until <= tick


@compiled(_ROWS, _SLOTS, 0)
def end_kept(rows: Rows, slots: Slots, tick: int) -> int:
    """Keep none of these slots any more whose promise is over; returns how many were kept."""
    ended = 0
    for slot in slots:
        if rows[slot, HINT] & KEPT and _is_over(rows, slot, tick):
            rows[slot, HINT] &= ~KEPT
            ended += 1
    return ended


@compiled()
def _weakest_first(rows: Rows, slots: Slots, places: Depths) -> Depths:
    """Sort places of slots by what is promised: NORMAL before HIGH, then what ends last, then tails."""
    strength = np.empty(len(places), np.int64)
    for number, place in enumerate(places):
        promised, until = _promised(rows, slots[place])
        depth = np.int64(rows[slots[place], SPAN]) >> DEPTH_SHIFT
        ends = promised << 32 - UNTIL_SHIFT | LARGEST_TICK - until
        strength[number] = ends << _DEPTH_BITS | _LARGEST_DEPTH - depth
    return places[np.argsort(strength)]


@compiled()
def _gives(source: int, tenant: int, storer: int, beyond_most: Depths, beyond_guaranteed: Depths) -> bool:
    """Whether a slot may be taken from a tenant. Where none may now, none may later."""
    if source == _BEYOND_MOST:
        return bool(beyond_most[tenant] > 0)
    return bool(tenant == storer if source == _OWN else beyond_guaranteed[tenant] > 0)


@compiled(_ROWS, _SHARES, _SLOTS, _STORER, 0, 0, 0)
def choose(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - one pass over what decides
    rows: Rows, shares: Shares, slots: Slots, storer: Storer, tick: int, room: int, wanted: int
) -> tuple[Slots, Slots, Depths]:
    """Return up to `wanted` of some slots, that come in the order in which they should leave.

    One of which something is promised is passed over, and is kept. Beyond as many as there is room for, the
    weakest of those that are kept leaves instead. They leave, too, if nothing else is there.

    Returns what leaves, what is passed over, and for each that leaves how many were passed over until then.
    """
    beyond_most, beyond_guaranteed = shares[HELD] - shares[MOST], shares[HELD] - shares[GUARANTEED]
    beyond_most[storer.tenant] += storer.incoming
    beyond_guaranteed[storer.tenant] += storer.incoming
    # by places in `slots`
    is_promised, is_kept = np.empty(len(slots), np.bool_), np.empty(len(slots), np.bool_)
    tenants, strength = np.empty(len(slots), np.int64), np.empty(len(slots), np.int64)
    has_left = np.zeros(len(slots), np.bool_)
    for place, slot in enumerate(slots):
        is_promised[place] = not _is_over(rows, slot, tick)
        is_kept[place] = rows[slot, HINT] & KEPT != 0
        tenants[place] = tenant_of(rows, slot)
    weakest_first = _weakest_first(rows, slots, np.flatnonzero(is_promised))
    for number, place in enumerate(weakest_first):
        strength[place] = number

    leaving, passed_before = np.empty(wanted, np.int32), np.empty(wanted, np.int64)
    passed = np.empty(len(slots), np.int32)
    count = passed_count = 0
    gives = np.empty(len(beyond_most), np.bool_)
    for source in range(_SOURCES):
        for tenant in range(len(gives)):
            gives[tenant] = _gives(source, tenant, storer.tenant, beyond_most, beyond_guaranteed)
        # Both only go forward: before the one all have left or are kept, before the other none is kept.
        at = weakest = 0
        while count < wanted:
            chosen, is_full = -1, False
            while at < len(slots) and chosen < 0 and not is_full:
                place = at
                at += 1
                if is_kept[place] or has_left[place] or not gives[tenants[place]]:
                    continue
                if not is_promised[place]:
                    chosen = place
                    continue
                is_kept[place] = True
                passed[passed_count] = slots[place]
                passed_count += 1
                is_full = room <= 0
                if not is_full:
                    room -= 1
                    weakest = min(weakest, strength[place])
                elif strength[place] < weakest:
                    chosen = place
            while chosen < 0 and weakest < len(weakest_first):
                place = weakest_first[weakest]
                if is_kept[place] and gives[tenants[place]]:
                    chosen = place
                weakest += 1
            if chosen < 0:
                break
            room += is_kept[chosen] and not is_full
            is_kept[chosen], has_left[chosen] = False, True
            tenant = tenants[chosen]
            beyond_most[tenant] -= 1
            beyond_guaranteed[tenant] -= 1
            gives[tenant] = _gives(source, tenant, storer.tenant, beyond_most, beyond_guaranteed)
            leaving[count], passed_before[count] = slots[chosen], passed_count
            count += 1
    return leaving[:count], passed[:passed_count], passed_before[:count]


@compiled(_ROWS, _SLOTS, _SLOTS, _SLOTS, 0)
def keep(rows: Rows, passed: Slots, leaving: Slots, staying: Slots, tick: int) -> tuple[int, int]:
    """Keep what was passed over, but not what stays for another reason than its promise.

    Returns how many more are kept, and how many of those that leave do so in spite of a promise.
    """
    added = broken = 0
    for slot in passed:
        rows[slot, HINT] |= KEPT
        added += 1
    for slot in staying:
        added -= rows[slot, HINT] & KEPT != 0
        rows[slot, HINT] &= ~KEPT
    for slot in leaving:
        broken += not _is_over(rows, slot, tick)
    return added, broken


@compiled(_ROWS, _SHARES, _SLOTS, 0, 0)
def take(rows: Rows, shares: Shares, slots: Slots, tenant: int, hint: int) -> None:
    """Make slots that were nobody's a tenant's, of which is said to leave first (LOW) or NONE."""
    for slot in slots:
        rows[slot, SPAN] = rows[slot, SPAN] & ~TENANT_MASK | tenant << TENANT_SHIFT
        rows[slot, HINT] = hint
    shares[HELD, tenant] += len(slots)


@compiled(_ROWS, _SHARES, _SLOTS)
def let_go(rows: Rows, shares: Shares, slots: Slots) -> int:
    """Make slots nobody's, and forget what they were promised; returns how many were kept."""
    kept = 0
    for slot in slots:
        shares[HELD, tenant_of(rows, slot)] -= 1
        kept += rows[slot, HINT] & KEPT != 0
        rows[slot, SPAN] &= ~TENANT_MASK
        rows[slot, HINT] = NONE
    return kept


@compiled(_ROWS, _SHARES, _SLOTS, 0, 0, 0)
def reuse(  # noqa: PLR0913, PLR0917 - what decides
    rows: Rows, shares: Shares, slots: Slots, tenant: int, hint: int, tick: int
) -> int:
    """Have slots be used by a request that says LOW or nothing of them; returns how many were kept.

    What was nobody's becomes the tenant's. With a low hint they lose what they were promised, without any
    those are like all others that were to leave first, or whose time is over.
    """
    kept = 0
    for slot in slots:
        kept += rows[slot, HINT] & KEPT != 0
        rows[slot, HINT] &= ~KEPT
        promised = _promised(rows, slot)[0]
        if promised >= NORMAL if hint == LOW else _is_over(rows, slot, tick):
            rows[slot, HINT] = NONE
        if tenant != NOBODY and tenant_of(rows, slot) == NOBODY:
            rows[slot, SPAN] |= tenant << TENANT_SHIFT
            shares[HELD, NOBODY] -= 1
            shares[HELD, tenant] += 1
    return kept


@compiled(_ROWS, _SLOTS, 0, 0, 0)
def promise(rows: Rows, slots: Slots, wanted: int, until: int, tick: int) -> None:
    """Promise NORMAL or HIGH of slots that were used just now. What was promised stays where it is more."""
    for slot in slots:
        before, end = _promised(rows, slot)
        new_end = until
        if not _is_over(rows, slot, tick):
            if before > wanted:
                continue
            if before == wanted:
                new_end = max(end, until)
        rows[slot, HINT] = new_end << UNTIL_SHIFT | wanted


@compiled(_ROWS, _PATH, 0, 0)
def sweep(rows: Rows, path: ScanPath, runs: int, tick: int) -> tuple[int, int]:
    """Keep no slot of so many runs whose promise is over.

    Returns how many were kept, and the run to begin with next time.
    """
    ended = 0
    run = path.first
    for _ in range(runs):
        for slot in range(run * RUN, min((run + 1) * RUN, len(rows))):
            if rows[slot, HINT] & KEPT and _is_over(rows, slot, tick):
                rows[slot, HINT] &= ~KEPT
                ended += 1
        run = (run + path.step) % path.runs
    return ended, run


@compiled(_STATE, _SLOTS, _MARKS, 0)
def bury(state: EvictionState, slots: Slots, marks: Marks, clock: int) -> None:
    """Make ghosts of blocks. Where one stands already, that is lost sight of which is worth less."""
    rows, ghosts, per_unit = state.slots, state.ghosts, state.per_unit
    for place, slot in enumerate(slots):
        at, mark_print = _place(state, marks[place])
        if ghosts[at, PRINT] != EMPTY:
            new, old = _slot_kind(rows, slot, clock, per_unit), _ghost_kind(ghosts, at, clock, per_unit)
            if state.ranks[new] < state.ranks[old]:
                state.lost[new] += 1
                continue
            state.lost[old] += 1
        ghosts[at, USED_AT] = rows[slot, USED_AT]
        is_hinted = rows[slot, HINT] & PROMISE_MASK >= NORMAL
        ghosts[at, SPAN] = span_of(rows, slot) | (_GHOST_HINTED if is_hinted else 0)
        ghosts[at, PRINT] = mark_print
