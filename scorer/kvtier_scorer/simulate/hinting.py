"""Hints for a trace that has none, from the trace itself: true ones, inexact ones and false ones.

A request's pause is the time until half of its prompt's tokens have been asked for again. That is its own
next turn, or a sub-agent's, and not the use of a system prompt that others share. A client that knows its
tools would say about as much; that its session is over, it says as a low priority.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_common.hints import MOST_RETAIN_S, Hints, Priority
from kvtier_scorer.simulate.trace import Trace, TraceError

GRACE_S: Final = 2.0
"""Longer than the pause a promise is for: who comes back may have to wait."""
_FALSE_S: Final = (5.0, 300.0)  # what is said at random


def pauses_s(trace: Trace) -> NDArray[np.float64]:
    """Seconds until half of each prompt's tokens have been asked for again (float64); infinite for never.

    Raises TraceError: the trace has no times.
    """
    if trace.time_s is None:
        raise TraceError(f"{trace.name}: has no times, so no pauses are known; give a trace with time_s")
    next_s = np.full(len(trace.nodes.tokens), inf)
    pauses = np.empty(len(trace))
    for request in range(len(trace) - 1, -1, -1):
        path = trace.path(request)
        soonest = np.argsort(next_s[path], kind="stable")
        asked = np.cumsum(trace.nodes.tokens[path][soonest])
        half = int(np.searchsorted(asked, asked[-1] / 2))
        pauses[request] = next_s[path][soonest[half]] - trace.time_s[request]
        next_s[path] = trace.time_s[request]
    return pauses


def with_hints(trace: Trace, said: Sequence[Hints]) -> Trace:
    """The same requests, saying that."""
    return replace(trace, hints=tuple(said))


def true_hints(trace: Trace, *, error: float = 0.0, seed: int = 0) -> list[Hints]:
    """What each request would say that knows its pause, within `error` (0.5: 50 % more or less), evenly.

    Whose it is and what is never to be stored stays. Raises TraceError: the trace has no times.
    """
    chance = Random(seed)  # noqa: S311 - not for secrets
    said = []
    for pause_s, before in zip(pauses_s(trace).tolist(), trace.hints, strict=True):
        factor = chance.uniform(1 - error, 1 + error)
        over = pause_s + GRACE_S > MOST_RETAIN_S
        said.append(
            replace(before, retain_s=0.0, priority=Priority.LOW)
            if over
            else replace(before, retain_s=min(MOST_RETAIN_S, (pause_s + GRACE_S) * factor),
                         priority=Priority.NORMAL)
        )  # fmt: skip
    return said


def partly_false(said: Sequence[Hints], part: float, seed: int = 0) -> list[Hints]:
    """What is said, but for a part of the requests that say anything: some time, or that they are over."""
    chance = Random(seed)  # noqa: S311 - not for secrets
    return [_false(hints, chance) if chance.random() < part else hints for hints in said]


def _false(before: Hints, chance: Random) -> Hints:
    if chance.random() < 1 / 2:
        return replace(before, retain_s=0.0, priority=Priority.LOW)
    return replace(before, retain_s=chance.uniform(*_FALSE_S), priority=Priority.NORMAL)


def greedy(said: Sequence[Hints], part: float, seed: int = 0) -> list[Hints]:
    """A part of the requests asks for all that it can get, for a day; the others say nothing."""
    chance = Random(seed)  # noqa: S311 - not for secrets
    return [
        replace(hints, retain_s=float(MOST_RETAIN_S), priority=Priority.HIGH)
        if chance.random() < part
        else replace(hints, retain_s=0.0, priority=Priority.NORMAL)
        for hints in said
    ]
