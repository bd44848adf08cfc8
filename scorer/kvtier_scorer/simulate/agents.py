"""Agents' traffic, generated: sessions that grow by turns, with pauses for thought and tools, and sub-agents.

All sessions begin with the agent's instructions and tools. A turn's prompt is the one before it and what came
since: the answer and what a tool or a person said. Between two turns is a pause, of which most are short and
some long (a bounded Pareto distribution). A turn may hand work to sub-agents, which go on from its prompt,
each by a few turns of its own, and the session waits for the last of them. A session that has ended is
followed by a new one.
"""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Final

from kvtier_scorer.simulate.trace import Segment, TraceRequest

MODEL: Final = "Qwen/Qwen3-32B"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsWorkload:
    """How agents ask; ranges are even, ends included."""

    sessions: int = 60  # at any time
    requests: int = 4_000  # in all, sub-agents' among them
    system_tokens: int = 4_096  # instructions and tools that all sessions begin with
    task_tokens: tuple[int, int] = (1_024, 8_192)  # of a session's first prompt behind them
    turn_tokens: tuple[int, int] = (256, 3_072)  # by which a prompt grows in a turn
    output_tokens: tuple[int, int] = (64, 512)  # of an answer
    turns: tuple[int, int] = (4, 30)  # of a session
    pause_s: tuple[float, float] = (5.0, 300.0)  # the shortest and the longest
    pause_shape: float = 0.5  # Pareto's: smaller is a heavier tail
    fork_chance: float = 0.05  # of a turn to hand work to sub-agents
    forks: tuple[int, int] = (2, 4)  # sub-agents of such a turn
    fork_turns: tuple[int, int] = (2, 5)  # of each of them


AGENTS: Final = AgentsWorkload()


def agents(workload: AgentsWorkload, seed: int) -> Iterator[TraceRequest]:
    """Requests of agents in the order of time, without hints."""
    return islice(_Agents(workload, seed), workload.requests)


@dataclass(slots=True)
class _Talk:
    """A session or a sub-agent."""

    prompt: tuple[Segment, ...]
    turns: int  # to come
    parent: "_Talk | None" = None
    waits_for: int = 0  # sub-agents under way
    fresh: bool = True  # no turn was had


class _Agents:
    def __init__(self, workload: AgentsWorkload, seed: int) -> None:
        self._workload = workload
        self._chance = random.Random(seed)  # noqa: S311 - not for secrets
        self._numbers = count()
        self._due: list[tuple[float, int, _Talk]] = []
        for _ in range(workload.sessions):
            # at first somewhere within a pause
            self._push(self._chance.random() * self._pause_s(), self._session())

    def __iter__(self) -> Iterator[TraceRequest]:
        return self

    def __next__(self) -> TraceRequest:
        now_s, _, talk = heapq.heappop(self._due)
        if not talk.fresh:
            talk.prompt += (self._segment(self._workload.turn_tokens),)
        talk.fresh = False
        talk.turns -= 1
        request = TraceRequest(MODEL, talk.prompt, self._among(self._workload.output_tokens), now_s)
        self._go_on(talk, now_s)
        return request

    def _go_on(self, talk: _Talk, now_s: float) -> None:
        if talk.turns:
            if talk.parent is None and self._chance.random() < self._workload.fork_chance:
                self._fork(talk, now_s)
            else:
                self._push(now_s + self._pause_s(), talk)
        elif talk.parent is None:
            self._push(now_s + self._pause_s(), self._session())
        else:
            talk.parent.waits_for -= 1
            if not talk.parent.waits_for:
                self._push(now_s + self._workload.pause_s[0], talk.parent)

    def _fork(self, talk: _Talk, now_s: float) -> None:
        talk.waits_for = self._among(self._workload.forks)
        for _ in range(talk.waits_for):
            prompt = (*talk.prompt, self._segment(self._workload.turn_tokens))
            turns = self._among(self._workload.fork_turns)
            self._push(now_s + self._workload.pause_s[0], _Talk(prompt, turns, talk))

    def _session(self) -> _Talk:
        system = Segment("system", self._workload.system_tokens)
        return _Talk((system, self._segment(self._workload.task_tokens)), self._among(self._workload.turns))

    def _segment(self, tokens: tuple[int, int]) -> Segment:
        return Segment(next(self._numbers), self._among(tokens))

    def _among(self, bounds: tuple[int, int]) -> int:
        return self._chance.randint(*bounds)

    def _pause_s(self) -> float:
        """By the inverse of the bounded Pareto distribution's function."""
        least, most = self._workload.pause_s
        shape = self._workload.pause_shape
        beyond = 1 - self._chance.random() * (1 - (least / most) ** shape)
        return float(least * beyond ** (-1 / shape))

    def _push(self, at_s: float, talk: _Talk) -> None:
        heapq.heappush(self._due, (at_s, next(self._numbers), talk))
