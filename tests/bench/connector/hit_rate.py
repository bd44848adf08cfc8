"""Hit rates of the tier's eviction, of LRU, ARC and the optimum, on traces like those of LLM serving."""

import heapq
import random
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from statistics import fmean
from typing import Any, Final, Protocol

from kvtier_connector.bench.measure import Row, Run
from kvtier_connector.core.index.index import BlockIndex, BlockState

# LRU and ARC are at their best: both use a prompt's chunks from its tail to its root, so that of the chunks
# that one prompt touches tails leave before roots, and a prompt never pushes out its own beginning.
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


# They are drawn from a fixed seed. Lengths are in chunks; one chunk of 128 tokens makes a system prompt of 60
# chunks one of 7,680 tokens.
Prompts = Iterator[tuple[int, ...]]
_TASK_PROMPTS = 40


@dataclass(frozen=True, slots=True)
class Workload:
    """A trace and the caches that it is run against.

    Args:
        name: for the table.
        prompts: makes an endless trace from a source of chance.
        requests: how many prompts of it are used.
        capacities: sizes of the cache, in chunks.
    """

    name: str
    prompts: Callable[[random.Random], Prompts]
    requests: int
    capacities: tuple[int, ...]

    def trace(self, seed: int) -> list[tuple[int, ...]]:
        """Return the trace for a seed."""
        return list(islice(self.prompts(random.Random(seed)), self.requests))  # noqa: S311 - no secret


class Chunks:
    """Numbers chunks that no prompt has had yet."""

    def __init__(self) -> None:
        self._numbers = count()

    def new(self, length: int) -> tuple[int, ...]:
        """Return `length` new chunks."""
        return tuple(islice(self._numbers, length))


def high_cache(chance: random.Random) -> Prompts:
    """Users of 60 system prompts, 3,600 chunks in all: more than the device holds, less than the tier."""
    chunks = Chunks()
    systems = [chunks.new(60) for _ in range(60)]
    while True:
        yield chance.choice(systems) + chunks.new(chance.randint(1, 6))


def low_cache(chance: random.Random) -> Prompts:
    """Unique prompts of 10 to 70 chunks, but for one in twenty that repeats one of the last 200."""
    chunks = Chunks()
    recent: list[tuple[int, ...]] = []
    while True:
        again = recent and chance.random() < 1 / 20
        prompt = chance.choice(recent) if again else chunks.new(chance.randint(10, 70))
        recent = [*recent[-199:], prompt]
        yield prompt


def chat(chance: random.Random) -> Prompts:
    """80 sessions at a time, of 8 turns on average: a turn's prompt is all that was said before and more.

    A turn adds 2 to 10 chunks (question and answer); sessions begin with one of 8 system prompts of 10
    chunks, and speak in bursts: one of the 20 last active ones in half of the cases.
    """
    chunks = Chunks()
    systems = [chunks.new(10) for _ in range(8)]
    sessions = [chance.choice(systems) for _ in range(80)]
    while True:
        place = chance.randrange(60, 80) if chance.random() < 1 / 2 else chance.randrange(80)
        prompt = sessions.pop(place) + chunks.new(chance.randint(2, 10))
        sessions.append(chance.choice(systems) if chance.random() < 1 / 8 else prompt)
        yield prompt


def scan_mix(chance: random.Random) -> Prompts:
    """200 system prompts of 10 to 60 chunks by Zipf's law; one case of five is a one-off document of 300."""
    chunks = Chunks()
    systems = [chunks.new(chance.randint(10, 60)) for _ in range(200)]
    weights = [1 / rank for rank in range(1, 201)]
    while True:
        document = chance.random() < 1 / 5
        yield chunks.new(300) if document else chance.choices(systems, weights)[0] + chunks.new(2)


def loop(_chance: random.Random) -> Prompts:
    """110 prompts of 20 chunks, one after another, again and again: 2,200 chunks."""
    chunks = Chunks()
    prompts = [chunks.new(20) for _ in range(110)]
    while True:
        yield from prompts


def agents(chance: random.Random) -> Prompts:
    """20 tasks at a time, each a tree of 40 prompts that share a root of 40 chunks.

    A prompt goes on from the task's last one (7 cases of 10) or from any earlier one, by 2 to 8 chunks.
    All tasks share the first 15 chunks: the agent's instructions and tools.
    """
    chunks = Chunks()
    shared = chunks.new(15)
    tasks = [[shared + chunks.new(25)] for _ in range(20)]
    while True:
        place = chance.randrange(20)
        branches = tasks[place]
        parent = branches[-1] if chance.random() < 7 / 10 else chance.choice(branches)
        branches.append(parent + chunks.new(chance.randint(2, 8)))
        yield branches[-1]
        if len(branches) > _TASK_PROMPTS:
            tasks[place] = [shared + chunks.new(25)]


WORKLOADS = (
    Workload("high-cache", high_cache, 4000, (2048, 4096)),
    Workload("low-cache", low_cache, 3000, (2048, 4096, 8192)),
    Workload("chat", chat, 4000, (1024, 2048, 4096)),
    Workload("scan mix", scan_mix, 4000, (1024, 2048, 4096)),
    Workload("loop", loop, 2200, (1024, 2000)),
    Workload("agents", agents, 4000, (1024, 2048, 4096)),
)


# What is counted are chunks: a chunk of a prompt is a hit if it and all chunks before it are present when the
# prompt arrives, since only such a prefix can be loaded. The rate is hits over all chunks of all prompts but
# the first WARM_UP of the trace, in which every cache fills.
SEEDS: Final = (11, 12, 13)
"""Of the traces that are shown; the policy's constants were chosen on others."""
WARM_UP: Final = 0.2


class KVTierCache:
    """The tier's index, called as vLLM calls its manager for a request."""

    def __init__(self, capacity: int) -> None:
        self._index = BlockIndex(capacity, 8)

    def use(self, prompt: Prompt) -> int:
        """Look up until the first miss, load what was found, store the rest."""
        keys = [chunk.to_bytes(8, "little") for chunk in prompt]
        ready = (place for place, key in enumerate(keys) if self._index.state(key) is not BlockState.READY)
        found = next(ready, len(keys))
        self._index.pin(keys[:found])
        self._index.unpin(keys[:found])
        own = set(keys)
        self._index.commit(self._index.reserve(keys[found:], keep=own.__contains__).keys)
        return found


def hit_rate(trace: Sequence[Prompt], hits: Sequence[int]) -> float:
    """Return the share of chunks that were found, after the warm-up."""
    first = int(len(trace) * WARM_UP)
    return sum(hits[first:]) / sum(map(len, trace[first:]))


def compare(workload: Workload, capacity: int, seed: int) -> dict[str, Any]:
    """Run one trace through all caches of one size."""
    trace = workload.trace(seed)
    caches: dict[str, Cache] = {
        "kvtier": KVTierCache(capacity),
        "lru": LRUCache(capacity),
        "arc": ARCCache(capacity),
    }
    rates = {name: hit_rate(trace, [cache.use(prompt) for prompt in trace]) for name, cache in caches.items()}
    optimal = hit_rate(trace, optimal_hits(trace, capacity))
    return {"workload": workload.name, "capacity_chunks": capacity, **rates, "optimal": optimal}


def measure(_run: Run) -> list[dict[str, Any]]:
    """Return the hit rates on every workload with every size of cache, means over the seeds."""
    return [_mean(workload, capacity) for workload in WORKLOADS for capacity in workload.capacities]


def rows(found: list[dict[str, Any]]) -> Iterator[Row]:
    """Return rows of what `measure` returns."""
    for each in found:
        yield (
            f"hit rate, {each['workload']}, {each['capacity_chunks']} chunks",
            f"{each['kvtier']:.3f}",
            f"LRU {each['lru']:.3f}, ARC {each['arc']:.3f}, optimal {each['optimal']:.3f}",
            "",
        )


def _mean(workload: Workload, capacity: int) -> dict[str, Any]:
    found = [compare(workload, capacity, seed) for seed in SEEDS]
    means = {name: fmean(each[name] for each in found) for name in ("kvtier", "lru", "arc", "optimal")}
    return {"workload": workload.name, "capacity_chunks": capacity, **means}
