"""Which blocks leave first: those whose keeping earns least, by what was learnt of blocks used like them.

Nothing is kept in order. Of every slot it is known when and how often it was used, and of a number of slots
that are looked at, the least worth leave; the worth comes from reuse.py. Blocks that have left are remembered
as ghosts for a while (as in ARC and S3-FIFO), so that those that come back are known, and so that it is seen
what would have been used. A scan teaches that blocks used once are worth little, and then pushes out itself.
"""

from math import gcd
from typing import Final

import numpy as np

from kvtier_connector.core.index import eviction_kernels as kernels
from kvtier_connector.core.index.eviction_kernels import (
    CLOCK_MASK,
    EMPTY,
    ONCE,
    RUN,
    Depths,
    EvictionState,
    ScanPath,
    Spans,
)
from kvtier_connector.core.index.keytable import Marks, Slots
from kvtier_connector.core.index.reuse import ReuseStatistics

_FEWEST_RUNS: Final = 256
"""Looked at even for one that leaves: fewer tell little of what is worth least."""
_LOOKED_AT_FOR_EACH: Final = 8
"""Slots looked at for each that leaves, at least: what leaves is of the worst eighth, or nearly. Redis and
LHD choose from samples in the same way."""
_GOLDEN: Final = 0.618
_STORED_TOGETHER: Final = 1024
"""Blocks: some prompts of 16,000 tokens."""


class EvictionOrder:
    """Slots 0..capacity-1 by what they are worth. Time is counted in uses of blocks, modulo 2**32.

    Attributes:
        holds: reasons for which what is in each slot may not leave, shape (capacity,). The owner counts them;
            all begin with one.
    """

    def __init__(self, capacity: int) -> None:
        slots = np.full((capacity, kernels.SLOT_COLUMNS), 0, np.uint32)
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

    def clear(self) -> None:
        """Forget the ghosts. What was learnt of reuse stays."""
        self._state.ghosts[:, kernels.PRINT] = EMPTY

    def spans_of(self, marks: Marks) -> Spans:
        """Return how keys that are about to be stored were used before, as far as that is remembered."""
        return kernels.call_back(self._state, marks, self._clock)

    def insert(self, slots: Slots, spans: Spans, depths: Depths) -> None:
        """Add blocks used now, whose spans `spans_of` told."""
        kernels.renew(self._state, slots, spans, depths, self._clock)
        self._advance(len(slots))

    def use(self, slots: Slots, depths: Depths) -> None:
        """Count blocks as used now, again."""
        if len(slots):
            self.insert(slots, kernels.use(self._state, slots, self._clock), depths)

    def refresh(self, slots: Slots, depths: Depths) -> None:
        """Make blocks of one prompt, root to tail, as recent as can be, without counting a use."""
        spans = self._state.slots[slots, kernels.SPAN]
        kernels.renew(self._state, slots, spans, depths, self._clock)

    def restore(self, slots: Slots) -> None:
        """Add blocks of which nothing is known but the order in which they were stored, the oldest first.

        Prompts are stored root to tail, and where one ends is not known. So those stored about the same time
        count as one prompt: what was stored first of them leaves last.
        """
        places = np.arange(len(slots))
        within = places % _STORED_TOGETHER
        rows = self._state.slots
        rows[slots, kernels.USED_AT] = (self._clock + places - within) & CLOCK_MASK
        rows[slots, kernels.SPAN] = ONCE
        rows[slots, kernels.DEPTH] = within
        self._advance(len(slots))

    def worst(self, wanted: int) -> Slots:
        """Return up to `wanted` slots without a hold: the least worth, of equal ones the oldest, then tails.

        There are fewer only if fewer may leave.
        """
        runs = min(self._path.runs, max(_FEWEST_RUNS, _LOOKED_AT_FOR_EACH * wanted // RUN))
        slots, order, first = kernels.look_at(self._state, self._clock, self._path, runs, wanted)
        self._path = ScanPath(first, self._path.step, self._path.runs)
        if wanted < len(slots):
            leaving = np.argpartition(order, wanted)[:wanted]
            slots, order = slots[leaving], order[leaving]
        return slots[np.argsort(order)]

    def remember(self, slots: Slots, marks: Marks) -> None:
        """Make ghosts of blocks that leave. Where one stands already, that stays which is worth more."""
        kernels.bury(self._state, slots, marks, self._clock)

    def _advance(self, uses: int) -> None:
        self._clock = (self._clock + uses) & CLOCK_MASK
        self._statistics.advance(uses)
