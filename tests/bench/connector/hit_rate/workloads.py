"""Traces of prompts like those of LLM serving: which chunks each prompt has, in the order of arrival.

They are drawn from a fixed seed. Lengths are in chunks; one chunk of 128 tokens makes a system prompt of 60
chunks one of 7,680 tokens.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice

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
