"""Which blocks leave first: those whose keeping earns least, by what was learnt of blocks used like them.

Nothing is kept in order. Of every slot it is known when and how often it was used, and of a number of slots
that are looked at, the least worth leave; the worth comes from reuse.py. Blocks that have left are remembered
as ghosts for a while (as in ARC and S3-FIFO), so that those that come back are known, and so that it is seen
what would have been used. A scan teaches that blocks used once are worth little, and then pushes out itself.
"""

from collections.abc import Callable
from math import gcd
from typing import Final

import numpy as np
import numpy.typing as npt

from kvtier_connector.core.keytable import Slots
from kvtier_connector.core.reuse import ONCE, Ages, ReuseStatistics, Spans

Hashes = npt.NDArray[np.int64]
Depths = npt.NDArray[np.intp]
"""Places of blocks in their prompts, the root's being 0, shape (blocks,)."""
Candidates = npt.NDArray[np.int64]
"""Slots as wide as numpy wants places to be: it would convert narrower ones for every array looked into."""
Evictable = Callable[[Candidates], npt.NDArray[np.bool_]]

_RUN: Final = 8
"""Slots looked at in a row: they lie in the same cache lines, and their neighbours cost next to nothing."""
_RUNS_AT_ONCE: Final = 256
_LOOKED_AT_FOR_EACH: Final = 8
"""Slots looked at for each that leaves, at least: what leaves is of the worst eighth, or nearly. Redis and
LHD choose from samples in the same way."""
_GOLDEN: Final = 0.618
_STORED_TOGETHER: Final = 1024
"""Blocks: some prompts of 16,000 tokens."""
_EMPTY: Final = 0
_DEPTH_BITS: Final = 16
_LARGEST_DEPTH: Final = (1 << _DEPTH_BITS) - 1
_AGE_BITS: Final = 27
_LARGEST_AGE: Final = (1 << _AGE_BITS) - 1
_CLOCK_MASK: Final = (1 << 32) - 1


class EvictionOrder:
    """Slots 0..capacity-1 by what they are worth. Time is counted in uses of blocks, modulo 2**32."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._statistics = ReuseStatistics(capacity)
        self._clock = 0
        self._used_at = np.full(capacity, 0, np.uint32)
        self._spans = np.full(capacity, ONCE, np.uint8)
        self._depths = np.full(capacity, 0, np.uint16)
        # Ghosts have one place each, by their hash, and are told apart by other bits of it.
        self._ghost_prints = np.full(capacity, _EMPTY, np.uint32)
        self._ghost_used_at = np.full(capacity, 0, np.uint32)
        self._ghost_spans = np.full(capacity, ONCE, np.uint8)
        # Steps of about a golden section go through all runs, and any few steps are spread evenly.
        self._runs = -(-capacity // _RUN)
        golden = max(1, int(self._runs * _GOLDEN))
        self._step = next(step for step in range(golden, self._runs + 2) if gcd(step, self._runs) == 1)
        path = np.arange(_RUNS_AT_ONCE, dtype=np.int64) * self._step % self._runs * _RUN
        self._path: Candidates = path[:, None] + np.arange(_RUN)
        self._hand = 0

    def clear(self) -> None:
        """Forget the ghosts. What was learnt of reuse stays."""
        self._ghost_prints.fill(_EMPTY)

    def spans_of(self, hashes: Hashes) -> Spans:
        """Return how keys that are about to be stored were used before, as far as that is remembered."""
        spans = np.full(len(hashes), ONCE, np.uint8)
        places, prints = self._places(hashes)
        known = self._ghost_prints[places] == prints
        if known.any():
            ghosts = places[known]
            spans[known] = self._statistics.use(
                self._ghost_spans[ghosts], self._ages(self._ghost_used_at[ghosts])
            )
            self._ghost_prints[ghosts] = _EMPTY
        return spans

    def insert(self, slots: Slots, spans: Spans, depths: Depths) -> None:
        """Add blocks used now, whose spans `spans_of` told."""
        self._spans[slots] = spans
        self.refresh(slots, depths)
        self._advance(len(slots))

    def use(self, slots: Slots, depths: Depths) -> None:
        """Count blocks as used now, again."""
        if len(slots):
            self._spans[slots] = self._statistics.use(self._spans[slots], self._ages(self._used_at[slots]))
            self.refresh(slots, depths)
            self._advance(len(slots))

    def refresh(self, slots: Slots, depths: Depths) -> None:
        """Make blocks of one prompt, root to tail, as recent as can be, without counting a use."""
        self._used_at[slots] = self._clock
        self._depths[slots] = np.minimum(depths, _LARGEST_DEPTH)
        # A root is used whenever its tails are.
        self._spans[slots] = np.minimum.accumulate(self._spans[slots][::-1])[::-1]

    def restore(self, slots: Slots) -> None:
        """Add blocks of which nothing is known but the order in which they were stored, the oldest first.

        Prompts are stored root to tail, and where one ends is not known. So those stored about the same time
        count as one prompt: what was stored first of them leaves last.
        """
        self._spans[slots] = ONCE
        places = np.arange(len(slots))
        within = places % _STORED_TOGETHER
        self._depths[slots] = within
        self._used_at[slots] = (self._clock + places - within) & _CLOCK_MASK
        self._advance(len(slots))

    def worst(self, wanted: int, evictable: Evictable) -> Slots:
        """Return up to `wanted` evictable slots, the least worth first; of equal ones the oldest, then tails.

        There are fewer only if fewer are evictable.
        """
        slots = self._look_at(wanted, evictable)
        ages = self._ages(self._used_at[slots])
        # Floats that are not negative keep their order as integers. 20 bits of 31 are more than is known.
        worth = self._statistics.worth(self._spans[slots], ages).view(np.uint32) >> 11
        order = worth.astype(np.int64)
        order <<= _AGE_BITS
        order |= _LARGEST_AGE - np.minimum(ages, _LARGEST_AGE)
        order <<= _DEPTH_BITS
        order |= ~self._depths[slots]
        if wanted < len(slots):
            first = np.argpartition(order, wanted)[:wanted]
            slots, order = slots[first], order[first]
        return slots[np.argsort(order)].astype(np.int32)

    def remember(self, slots: Slots, hashes: Hashes) -> None:
        """Make ghosts of blocks that leave. Where one stands already, that stays which is worth more."""
        places, prints = self._places(hashes)
        old = self._ghost_spans[places], self._ages(self._ghost_used_at[places])
        new = self._spans[slots], self._ages(self._used_at[slots])
        empty = self._ghost_prints[places] == _EMPTY
        goes_in = empty | (self._statistics.worth(*new) >= self._statistics.worth(*old))
        pushed_out = goes_in & ~empty
        self._statistics.lose(old[0][pushed_out], old[1][pushed_out])
        self._statistics.lose(new[0][~goes_in], new[1][~goes_in])
        places, slots = places[goes_in], slots[goes_in]
        self._ghost_prints[places] = prints[goes_in]
        self._ghost_used_at[places] = self._used_at[slots]
        self._ghost_spans[places] = self._spans[slots]

    def _look_at(self, wanted: int, evictable: Evictable) -> Candidates:
        """Return evictable ones of the slots whose turn it is, at least `wanted` if there are so many."""
        found = [np.empty(0, np.int64)]
        count = runs = 0
        while runs < self._runs and (count < wanted or runs * _RUN < _LOOKED_AT_FOR_EACH * wanted):
            steps = min(_RUNS_AT_ONCE, self._runs - runs)
            slots = self._path[:steps].ravel() + self._hand * _RUN
            slots[slots >= self._runs * _RUN] -= self._runs * _RUN
            slots = slots[slots < self._capacity]  # the last run may be a short one
            self._hand = (self._hand + self._step * steps) % self._runs
            found.append(slots[evictable(slots)])
            runs += steps
            count += len(found[-1])
        return np.concatenate(found)

    def _places(self, hashes: Hashes) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.uint32]]:
        unsigned = hashes.view(np.uint64)
        prints = (unsigned >> np.uint64(32)).astype(np.uint32) | np.uint32(1)  # never that of an empty place
        return (unsigned % np.uint64(self._capacity)).astype(np.intp), prints

    def _ages(self, used_at: npt.NDArray[np.uint32]) -> Ages:
        return np.uint32(self._clock) - used_at

    def _advance(self, uses: int) -> None:
        self._clock = (self._clock + uses) & _CLOCK_MASK
        self._statistics.advance(uses)
