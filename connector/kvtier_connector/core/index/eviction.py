"""Which blocks leave first: those whose keeping earns least, by what was learnt of blocks used like them.

Nothing is kept in order. Of every slot it is known when and how often it was used, and of a number of slots
that are looked at, the least worth leave. Blocks that have left are remembered as ghosts for a while (as in
ARC and S3-FIFO), so that it is seen what would have been used. A scan teaches that blocks used once are worth
little, and then pushes out itself.

A block's class is how far apart its last uses were, or that it has been used once. For each class it is
counted at what age blocks are used again, and at what age they are lost sight of. From the two comes the
hazard, the chance of a use at an age that has been reached (Kaplan and Meier, 1958), and from that the most
uses that keeping a block can earn for the memory and time that it takes, over all times to keep it for: the
index of Gittins (1979). Caches that rank by hit density do alike (Beckmann, Chen and Cidon, "LHD", NSDI
2018). Where use gets less likely with age, the order is that of LRU within a class. Where it gets more
likely, as in a loop that is larger than the cache, it is the reverse, and part of the loop stays.

Blocks that are said to be used again within some time are a class of their own, whatever their uses were: so
it is learnt what such words are worth, and among them age decides. When one of them would leave before its
time is over, it is kept and the next leaves: that part of the tier is bounded, and in it those stay that come
back soonest (Belady). A block that would have stayed anyway costs nothing of the part. Whose blocks are and
what was promised of them is in holdings.py.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Final

import numpy as np
import numpy.typing as npt

from kvtier_connector.core.compiled import compiled
from kvtier_connector.core.index import eviction_kernels as kernels
from kvtier_connector.core.index.eviction_kernels import (
    CLASSES,
    CLOCK_MASK,
    EMPTY,
    HINTED,
    ONCE,
    RANK_BITS,
    RUN,
    STEPS,
    STEPS_PER_OCTAVE,
    Depths,
    EvictionState,
    ScanPath,
    Spans,
)
from kvtier_connector.core.index.hints import ALL_FOR_ALL, BlockHint, Sharing
from kvtier_connector.core.index.holdings import Holdings
from kvtier_connector.core.index.keytable import Marks, Slots

Estimates = npt.NDArray[np.float32]  # uses for each block and use of time, shape (CLASSES, STEPS)
PerStep = npt.NDArray[np.float64]  # one number for each step of age, shape (STEPS,)
_PER_STEP: Final = np.empty(0)
_NO_SLOTS: Final = np.empty(0, np.int32)

_UNITS_PER_CAPACITY: Final = 64
"""A unit of age is so large a part of the capacity: less makes little difference to what should leave."""
_HALF_LIFE_CAPACITIES: Final = 32
"""After so many uses as the capacity has blocks, times this, an observation counts half."""
_PRIOR_HAZARD: Final = np.full(STEPS, 0.12)
"""Chance of a use within a step before anything is known: constant, so that worth falls with age: LRU."""
_PRIOR_WEIGHT: Final = 64.0  # observations that outweigh it
_FEWEST_RUNS: Final = 256  # looked at even for one that leaves: fewer tell little of what is worth least
_LOOKED_AT_FOR_EACH: Final = 8
"""Slots looked at for each that leaves, at least: what leaves is of the worst eighth, or nearly. Redis and
LHD choose from samples in the same way."""
_GOLDEN: Final = 0.618
_STORED_TOGETHER: Final = 1024  # blocks: some prompts of 16,000 tokens


class ReuseStatistics:
    """Learns the worth of blocks of a cache of `capacity` blocks."""

    def __init__(self, capacity: int) -> None:
        unit = max(1.0, capacity / _UNITS_PER_CAPACITY)
        # what ages in uses of blocks are multiplied by to get them in units
        self.per_unit = np.float32(1 / unit)
        self._widths = np.diff(unit * (2.0 ** (np.arange(STEPS + 1) / STEPS_PER_OCTAVE) - 1))
        # blocks used again, shape (CLASSES, STEPS). Whoever sees a use counts it.
        self.used = np.zeros((CLASSES, STEPS))
        self.lost = np.zeros((CLASSES, STEPS))  # blocks of which nothing more will be seen; likewise
        self._every = max(1, capacity // _UNITS_PER_CAPACITY)
        self._fade = 0.5 ** (1 / (_UNITS_PER_CAPACITY * _HALF_LIFE_CAPACITIES))
        self._uses = 0
        self._next_class = 0
        # blocks' worth as integers in the same order, shape (CLASSES, STEPS)
        self.ranks = np.zeros((CLASSES, STEPS), np.int64)
        self._estimates = np.zeros((CLASSES, STEPS), np.float32)
        for _ in range(HINTED):
            self._estimate_next()

    def advance(self, uses: int) -> None:
        """Let time pass: old observations fade, and new ones show from time to time."""
        self._uses += uses
        if self._uses >= self._every:
            fade = self._fade ** (self._uses / self._every)
            self.used *= fade
            self.lost *= fade
            self._uses = 0
            self._estimate_next()

    def _estimate_next(self) -> None:
        """Bring one class of those by span up to date, as all at once would be felt, and that of HINTED."""
        number = self._next_class
        self._next_class = (number + 1) % HINTED
        # Classes of which little is known are taken to be like the others.
        whole = hazard(self.used.sum(axis=0), self.lost.sum(axis=0), _PRIOR_HAZARD)
        for each in (number, HINTED):
            self._estimates[each] = gittins_index(
                hazard(self.used[each], self.lost[each], whole), self._widths
            )
        # Floats that are not negative keep their order as integers. 20 bits of 31 are more than is known.
        self.ranks[:HINTED] = _as_ranks(in_order(self._estimates[:HINTED]))
        self.ranks[HINTED] = _as_ranks(self._estimates[HINTED])


def _as_ranks(estimates: Estimates) -> npt.NDArray[np.int32]:
    return estimates.view(np.int32) >> (31 - RANK_BITS)


@compiled(_PER_STEP, _PER_STEP, _PER_STEP)
def hazard(used: PerStep, lost: PerStep, prior: PerStep) -> PerStep:
    """Return the chance that a block which has reached an age is used in that step, of `prior` without any.

    Blocks that were lost sight of at an age were so in the middle of the step, on average.
    """
    estimate = np.empty(len(used))
    reached = 0.0
    for step in range(len(used) - 1, -1, -1):
        reached += used[step] + lost[step]
        estimate[step] = (used[step] + prior[step] * _PRIOR_WEIGHT) / (
            reached - lost[step] / 2 + _PRIOR_WEIGHT
        )
    return estimate


@compiled(_PER_STEP, _PER_STEP)
def gittins_index(hazard: PerStep, widths: PerStep) -> PerStep:
    """Return for each age the uses that a block earns for its time, if kept as long as that pays best."""
    left = np.ones(len(hazard) + 1)  # chance of no use before each step
    for step in range(len(hazard)):
        left[step + 1] = left[step] * (1 - hazard[step])
    best = np.zeros(len(hazard))
    for first in range(len(hazard)):
        time = 0.0
        for last in range(first, len(hazard)):
            time += widths[last] * (left[last] + left[last + 1]) / 2
            best[first] = max(best[first], (left[first] - left[last + 1]) / time)
    return best


@compiled(np.empty((0, 0), np.float32))
def in_order(estimates: Estimates) -> Estimates:
    """Make no class worth less than the next, nor than class 0.

    A prompt's root is used whenever its tail is, so that it is in the same or an earlier class. It must not
    leave first for a small difference between estimates: a prefix without its root is worth nothing.
    """
    ordered: Estimates = estimates.copy()
    for step in range(estimates.shape[1]):
        least = estimates[0, step]
        for number in range(len(estimates) - 1, 0, -1):
            least = max(least, estimates[number, step])
            ordered[number, step] = least
    return ordered


@dataclass(frozen=True, slots=True)
class Leaving:
    """Blocks in the order in which they should leave, and what that leaves in its place."""

    slots: Slots
    passed: Slots  # would have left, but for what was promised of them
    passed_before: Depths  # how many of those were passed over until each of `slots`

    @classmethod
    def plainly(cls, slots: Slots) -> "Leaving":
        """Blocks of a tier where nothing was promised."""
        return cls(slots, _NO_SLOTS, np.zeros(len(slots), np.int64))


class EvictionOrder:
    """Slots 0..capacity-1 by what they are worth. Time is counted in uses of blocks, modulo 2**32."""

    def __init__(
        self,
        capacity: int,
        sharing: Sharing = ALL_FOR_ALL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        slots = np.full((capacity, kernels.SLOT_COLUMNS), 0, np.uint32)
        # reasons for which what is in each slot may not leave, shape (capacity,). The owner counts them; all
        # begin with one.
        self.holds: Slots = slots[:, kernels.HOLDS].view(np.int32)
        self.holds.fill(1)
        # Ghosts have one place each, by their mark.
        ghosts = np.full((capacity, kernels.GHOST_COLUMNS), EMPTY, np.uint32)
        self._statistics = ReuseStatistics(capacity)
        known = self._statistics
        self._state = EvictionState(slots, ghosts, known.used, known.lost, known.ranks, known.per_unit)
        self._clock = 0
        # Steps of about a golden section go through all runs, and any few steps are spread evenly.
        runs = -(-capacity // RUN)
        golden = max(1, int(runs * _GOLDEN))
        step = next(step for step in range(golden, runs + 2) if gcd(step, runs) == 1)
        self._path = ScanPath(0, step, runs)
        self.holdings = Holdings(slots, self._path, sharing, clock)

    def clear(self) -> None:
        """Forget the ghosts, tenants and promises. What was learnt of reuse stays."""
        self.holdings.clear()
        self._state.ghosts[:, kernels.PRINT] = EMPTY

    def spans_of(self, marks: Marks) -> Spans:
        """Return how keys that are about to be stored were used before, as far as that is remembered."""
        return kernels.call_back(self._state, marks, self._clock)

    def insert(self, slots: Slots, spans: Spans, depths: Depths, hint: BlockHint | None = None) -> None:
        """Add blocks used now, whose spans `spans_of` told."""
        self._renew(slots, spans, depths)
        self.holdings.take(slots, hint)

    def use(self, slots: Slots, depths: Depths, hint: BlockHint | None = None) -> None:
        """Count blocks as used now, again."""
        if len(slots):
            self._renew(slots, kernels.use(self._state, slots, self._clock), depths)
            self.holdings.use(slots, hint)

    def refresh(self, slots: Slots, depths: Depths, hint: BlockHint | None = None) -> None:
        """Make blocks of one prompt, root to tail, as recent as can be, without counting a use."""
        spans = self._state.slots[slots, kernels.SPAN] & np.uint32(kernels.SPAN_MASK)
        kernels.renew(self._state, slots, spans, depths, self._clock)
        self.holdings.use(slots, hint)

    def restore(self, slots: Slots) -> None:
        """Add blocks of which nothing is known but the order in which they were stored, the oldest first.

        Prompts are stored root to tail, and where one ends is not known. So those stored about the same time
        count as one prompt: what was stored first of them leaves last.
        """
        places = np.arange(len(slots))
        within = places % _STORED_TOGETHER
        rows = self._state.slots
        rows[slots, kernels.USED_AT] = (self._clock + places - within) & CLOCK_MASK
        rows[slots, kernels.SPAN] = ONCE | within << kernels.DEPTH_SHIFT
        self.holdings.take(slots, None)
        self._advance(len(slots))

    def worst(self, wanted: int, hint: BlockHint | None = None, incoming: int = 0) -> Leaving:
        """Choose up to `wanted` slots without a hold: the least worth, of equal ones the oldest, then tails.

        There are fewer only if fewer may leave, or, with tenants, if those that may are rare. Room is made
        for so many slots of the hint's tenant. Nothing changes by it: what leaves, `Holdings.keep` is told.
        """
        runs = min(self._path.runs, max(_FEWEST_RUNS, _LOOKED_AT_FOR_EACH * wanted // RUN))
        now, storer = self.holdings.moment(self._clock), self.holdings.storer(hint, incoming)
        slots, order, first = kernels.look_at(
            self._state, self.holdings.shares, now, self._path, storer, runs, wanted
        )
        self._path = self._path._replace(first=first)
        if self.holdings.is_weighed:
            return Leaving(*self.holdings.choose(slots[np.argsort(order)], storer, wanted))
        if wanted < len(slots):
            leaving = np.argpartition(order, wanted)[:wanted]
            slots, order = slots[leaving], order[leaving]
        return Leaving.plainly(slots[np.argsort(order)])

    def newest(self, slots: Slots, most: int) -> Slots:
        """Return up to `most` of some slots, those used last first, and of one use roots before tails."""
        rows = self._state.slots[slots]
        ages = np.uint32(self._clock) - rows[:, kernels.USED_AT]
        order = ages.astype(np.int64) << 32 | rows[:, kernels.SPAN] >> kernels.DEPTH_SHIFT
        if most < len(slots):
            first = np.argpartition(order, most)[:most]
            slots, order = slots[first], order[first]
        return slots[np.argsort(order)]

    def remember(self, slots: Slots, marks: Marks) -> None:
        """Make ghosts of blocks that leave. Where one stands already, that stays which is worth more."""
        kernels.bury(self._state, slots, marks, self._clock)

    def _renew(self, slots: Slots, spans: Spans, depths: Depths) -> None:
        kernels.renew(self._state, slots, spans, depths, self._clock)
        self._advance(len(slots))

    def _advance(self, uses: int) -> None:
        self._clock = (self._clock + uses) & CLOCK_MASK
        self._statistics.advance(uses)
