"""Caches of chunks to compare hit rates with: LRU, ARC, and the optimum that knows the future.

LRU and ARC are at their best: both use a prompt's chunks from its tail to its root, so that of the chunks
that one prompt touches tails leave before roots, and a prompt never pushes out its own beginning.
"""

import heapq
from collections import OrderedDict
from collections.abc import Container, Iterable, Sequence
from typing import Final, Protocol

Prompt = Sequence[int]
"""The chunks of a prompt, root to tail; equal numbers are equal chunks after equal prefixes."""
_NEVER: Final = 1 << 62


def contiguous(prompt: Prompt, chunks: Container[int]) -> int:
    """Return how many chunks of a prompt are present from its root on."""
    return next((place for place, chunk in enumerate(prompt) if chunk not in chunks), len(prompt))


class Cache(Protocol):
    """A cache of chunks."""

    def use(self, prompt: Prompt) -> int:
        """Look a prompt up, load and store its chunks; return how many chunks were found from its root on."""


class LRUCache:
    """Evicts the least recently used chunk."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._chunks: OrderedDict[int, None] = OrderedDict()

    def use(self, prompt: Prompt) -> int:
        """Use all chunks, the root last."""
        found = contiguous(prompt, self._chunks)
        for chunk in reversed(prompt):
            self._chunks[chunk] = None
            self._chunks.move_to_end(chunk)
        while len(self._chunks) > self._capacity:
            self._chunks.popitem(last=False)
        return found


class ARCCache:
    """Adaptive replacement, as in figure 4 of Megiddo and Modha, "ARC" (FAST 2003), whose names it keeps."""

    def __init__(self, capacity: int) -> None:
        self._c = capacity
        self._p = 0.0
        self._t1: OrderedDict[int, None] = OrderedDict()  # the first is the least recently used
        self._t2: OrderedDict[int, None] = OrderedDict()
        self._b1: OrderedDict[int, None] = OrderedDict()
        self._b2: OrderedDict[int, None] = OrderedDict()

    def use(self, prompt: Prompt) -> int:
        """Use what is present first, as what is absent would push it out; of both the root last."""
        present = [chunk in self._t1 or chunk in self._t2 for chunk in prompt]
        found = present.index(False) if False in present else len(prompt)
        own = frozenset(prompt)
        for wanted in (True, False):
            for place in range(len(prompt) - 1, -1, -1):
                if present[place] is wanted:
                    self._use_one(prompt[place], own)
        return found

    def _use_one(self, chunk: int, own: Container[int]) -> None:
        t1, t2, b1, b2, c = self._t1, self._t2, self._b1, self._b2, self._c
        if chunk in t1 or chunk in t2:
            (t1 if chunk in t1 else t2).pop(chunk)
        elif chunk in b1:
            self._p = min(c, self._p + max(len(b2) / len(b1), 1))
            self._replace(own, in_b2=False)
            b1.pop(chunk)
        elif chunk in b2:
            self._p = max(0, self._p - max(len(b1) / len(b2), 1))
            self._replace(own, in_b2=True)
            b2.pop(chunk)
        else:
            if len(t1) + len(t2) >= c:
                self._replace(own, in_b2=False)
            while len(t1) + len(b1) >= c and b1:
                b1.popitem(last=False)
            while len(t1) + len(t2) + len(b1) + len(b2) >= 2 * c and b2:
                b2.popitem(last=False)
            t1[chunk] = None
            return
        t2[chunk] = None

    def _replace(self, own: Container[int], *, in_b2: bool) -> None:
        """Evict one chunk. A prompt's own chunks, the most recent of both lists, are in flight."""
        t1, t2 = self._t1, self._t2
        free1, free2 = (bool(t) and next(iter(t)) not in own for t in (t1, t2))
        over = len(t1) > self._p or (in_b2 and len(t1) == self._p)
        if (t1 and not free1 and not free2) or (free1 and (over or not free2)):
            self._b1[t1.popitem(last=False)[0]] = None
        else:
            self._b2[t2.popitem(last=False)[0]] = None


def optimal_hits(trace: Iterable[Prompt], capacity: int) -> list[int]:
    """Return for each prompt how many chunks the best of all policies finds: more is impossible.

    This is Belady's MIN ("A study of replacement algorithms for a virtual-storage computer", 1966), which
    evicts what is used last again, with the right not to store. It counts chunks behind a gap as well, which
    cannot be loaded, so that no policy need be able to reach it.
    """
    prompts = [tuple(prompt) for prompt in trace]
    uses = [chunk for prompt in prompts for chunk in prompt]
    following = [_NEVER] * len(uses)
    seen: dict[int, int] = {}
    for time in range(len(uses) - 1, -1, -1):
        following[time] = seen.get(uses[time], _NEVER)
        seen[uses[time]] = time
    next_use: dict[int, int] = {}  # of what is present
    latest: list[tuple[int, int]] = []  # minus the next use, and the chunk; some are outdated
    found, time = [], 0
    for prompt in prompts:
        hits = 0
        for chunk in prompt:
            hits += chunk in next_use
            if following[time] == _NEVER:
                next_use.pop(chunk, None)
            else:
                next_use[chunk] = following[time]
                heapq.heappush(latest, (-following[time], chunk))
            while len(next_use) > capacity:
                use, last = heapq.heappop(latest)
                if next_use.get(last) == -use:
                    del next_use[last]
            time += 1
        found.append(hits)
    return found
