"""What a block is worth: how likely it is to be used again soon, learnt from how blocks are used.

A block's class is how far apart its last uses were, or that it has been used once. For each class the
statistics count at what age blocks are used again, and at what age they are lost sight of. From the two
comes the hazard, the chance of a use at an age that has been reached (Kaplan and Meier, "Nonparametric
estimation from incomplete observations", 1958), and from that a block's worth: the most uses that keeping
it can earn for the room and time that it takes, over all times to keep it for (the index of Gittins, "Bandit
processes and dynamic allocation indices", 1979). Caches that rank by hit density do alike (Beckmann, Chen
and Cidon, "LHD", NSDI 2018).

Where use gets less likely with age, the order is that of LRU within a class. Where it gets more likely, as in
a loop that is larger than the cache, it is the reverse, and part of the loop stays.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

Ages = npt.NDArray[np.uint32]
"""How many uses of blocks ago, shape (blocks,)."""
Spans = npt.NDArray[np.uint8]
"""Times in steps of half an octave, or ONCE, shape (blocks,)."""

PerStep = npt.NDArray[np.float64]
"""One number for each step of age, shape (steps,)."""

_STEPS_PER_OCTAVE: Final = 2
_STEPS: Final = 28
"""14 octaves: to 256 times the capacity."""
_STEPS_PER_CLASS: Final = 4
ONCE: Final = 255
"""The span of a block that has been used once."""
_CLASS_OF_SPAN: Final = np.array(
    [1 + span // _STEPS_PER_CLASS if span < _STEPS else 0 for span in range(ONCE + 1)], np.intp
)
_FIRST_OF_CLASS_OF_SPAN: Final = (_CLASS_OF_SPAN * _STEPS).astype(np.int16)
_CLASSES: Final = 1 + _STEPS // _STEPS_PER_CLASS
_LATER: Final = np.triu(np.ones((_STEPS, _STEPS), np.bool_))
_UNITS_PER_CAPACITY: Final = 64
"""Ages below 1/64 of the capacity make no difference to what should leave."""
_HALF_LIFE_CAPACITIES: Final = 32
"""After so many uses as the capacity has blocks, times this, an observation counts half."""
_PRIOR_HAZARD: Final = 0.12
"""Chance of a use within a step before anything is known: constant, so that worth falls with age: LRU."""
_PRIOR_WEIGHT: Final = 64.0
"""Observations that outweigh it."""


class ReuseStatistics:
    """Learns the worth of blocks of a cache of `capacity` blocks."""

    def __init__(self, capacity: int) -> None:
        self._unit = max(1.0, capacity / _UNITS_PER_CAPACITY)
        ends = self._unit * (2.0 ** (np.arange(_STEPS + 1) / _STEPS_PER_OCTAVE) - 1)
        self._widths = np.diff(ends)
        self._per_unit, self._one = np.float32(1 / self._unit), np.float32(1)
        self._steps_per_octave, self._last_step = np.float32(_STEPS_PER_OCTAVE), np.float32(_STEPS - 1)
        self._used = np.zeros((_CLASSES, _STEPS))
        self._lost = np.zeros((_CLASSES, _STEPS))
        self._every = max(1, capacity // _UNITS_PER_CAPACITY)
        self._fade = 0.5 ** (1 / (_UNITS_PER_CAPACITY * _HALF_LIFE_CAPACITIES))
        self._uses = 0
        self._next_class = 0
        self._estimates = np.zeros((_CLASSES, _STEPS), np.float32)
        for _ in range(_CLASSES):
            self._estimate_next()

    def spans(self, ages: Ages) -> Spans:
        """Return ages in steps."""
        steps = ages.astype(np.float32)  # in place from here on: it runs over thousands of blocks at a time
        steps *= self._per_unit
        steps += self._one
        np.log2(steps, out=steps)
        steps *= self._steps_per_octave
        return np.minimum(steps, self._last_step, out=steps).astype(np.uint8)

    def use(self, spans: Spans, ages: Ages) -> Spans:
        """Count blocks that are used again; returns their new spans."""
        found = self.spans(ages)
        np.add.at(self._used, (_CLASS_OF_SPAN[spans], found), 1)
        # Slowly: one short time between two uses does not make a block popular.
        slowly = (3 * spans.astype(np.uint16) + found + 2) >> 2
        return np.where(spans == ONCE, found, slowly).astype(np.uint8)

    def lose(self, spans: Spans, ages: Ages) -> None:
        """Count blocks of which nothing more will be seen."""
        np.add.at(self._lost, (_CLASS_OF_SPAN[spans], self.spans(ages)), 1)

    def worth(self, spans: Spans, ages: Ages) -> npt.NDArray[np.float32]:
        """Return what keeping each block earns: uses for each block and use of time."""
        return self._worth.take(_FIRST_OF_CLASS_OF_SPAN[spans] + self.spans(ages))

    def advance(self, uses: int) -> None:
        """Let time pass: old observations fade, and new ones show from time to time."""
        self._uses += uses
        if self._uses >= self._every:
            fade = self._fade ** (self._uses / self._every)
            self._used *= fade
            self._lost *= fade
            self._uses = 0
            self._estimate_next()

    def _estimate_next(self) -> None:
        """Bring one class up to date: all at once would be felt."""
        number = self._next_class
        self._next_class = (number + 1) % _CLASSES
        # Classes of which little is known are taken to be like the others.
        whole = hazard(self._used.sum(axis=0), self._lost.sum(axis=0), _PRIOR_HAZARD)
        self._estimates[number] = worth(hazard(self._used[number], self._lost[number], whole), self._widths)
        self._worth = in_order(self._estimates)


def hazard(used: PerStep, lost: PerStep, prior: PerStep | float) -> PerStep:
    """Return the chance that a block which has reached an age is used in that step, shape (steps,).

    Args:
        used: blocks that were used again at each age.
        lost: blocks that were lost sight of at each age: in the middle of the step, on average.
        prior: what is believed without any.
    """
    reached = np.cumsum((used + lost)[::-1])[::-1] - lost / 2
    estimate: PerStep = (used + prior * _PRIOR_WEIGHT) / (reached + _PRIOR_WEIGHT)
    return estimate


def worth(hazard: PerStep, widths: PerStep) -> PerStep:
    """Return for each age the uses that a block earns for its time, if kept as long as that pays best.

    Args:
        hazard: chance of a use in each step.
        widths: length of each step.
    """
    missed = 1 - hazard
    after = np.cumprod(missed)
    before = np.concatenate(([1.0], after[:-1]))
    times = widths * (before + after) / 2
    ends = np.cumsum(times)
    earned = before[:, None] - after
    taken = ends - (ends - times)[:, None]
    # From a step to an earlier one no time passes.
    best: PerStep = np.divide(earned, taken, out=np.zeros_like(taken), where=_LATER).max(axis=1)
    return best


def in_order(estimates: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Make no class worth less than the next, nor than class 0, shape (classes, steps).

    A prompt's root is used whenever its tail is, so that it is in the same or an earlier class. It must not
    leave first for a small difference between estimates: a prefix without its root is worth nothing.
    """
    ordered = estimates.copy()
    ordered[1:] = np.maximum(np.maximum.accumulate(estimates[:0:-1])[::-1], estimates[0])
    return ordered
