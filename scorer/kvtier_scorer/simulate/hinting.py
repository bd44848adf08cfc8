"""Hints for a trace that has none, from the trace itself: true ones, inexact ones and false ones.

A request's pause is the time until half of its session's own tokens have been asked for again. That is its
own next turn, or a sub-agent's, and not the use of a system prompt that other sessions share, however long.
A client that knows its tools would say about as much; that its session is over, it says as a low priority.

Nobody asks a system prompt alone: where prompts go different ways and none ends, the ways are sessions.
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
    """Seconds until half of each request's own tokens are asked for again (float64); infinite for never.

    Raises TraceError: the trace has no times.
    """
    if trace.time_s is None:
        raise TraceError(f"{trace.name}: has no times, so no pauses are known; give a trace with time_s")
    next_s = np.full(len(trace.nodes.tokens), inf)
    shared = _shared(trace)
    pauses = np.empty(len(trace))
    for request in range(len(trace) - 1, -1, -1):
        path = trace.path(request)
        own = path[~shared[path]]
        own = own if len(own) else path
        soonest = np.argsort(next_s[own], kind="stable")
        asked = np.cumsum(trace.nodes.tokens[own][soonest])
        half = int(np.searchsorted(asked, asked[-1] / 2))
        pauses[request] = next_s[own][soonest[half]] - trace.time_s[request]
        next_s[path] = trace.time_s[request]
    return pauses


def _shared(trace: Trace) -> NDArray[np.bool_]:
    """Whether each node is before a place where sessions part (bool)."""
    parent, ends = trace.nodes.parent, trace.nodes.ends
    behind = parent >= 0
    children = np.bincount(parent[behind], minlength=len(parent))
    if trace.block_tokens is not None:
        # a prompt's last block is cut off, and is another one in the next turn
        last = behind & (children == 0)
        ends = ends + np.bincount(parent[last], ends[last], minlength=len(parent)).astype(np.int64)
    shared: NDArray[np.bool_] = (children > 1) & (ends == 0)
    for node in range(len(parent) - 1, -1, -1):  # children before their parents
        if shared[node] and parent[node] >= 0:
            shared[parent[node]] = True
    return shared


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
