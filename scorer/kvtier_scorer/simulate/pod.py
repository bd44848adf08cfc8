"""One pod over time: a queue, one prefill at a time and answers that advance together.

Answers advance as a fluid: all running ones gain tokens at one speed, which changes when a request joins,
leaves or is prefilled. A step that prefills also gives each of them its one token.
"""

import heapq
from collections import deque
from dataclasses import dataclass, field
from math import inf

from kvtier_scorer.simulate.settings import PodSettings, compute_s, step_s

_ROUNDING: float = 1e-6


@dataclass(frozen=True, slots=True)
class Prefill:
    """A prompt whose found part is on the device."""

    request: int  # whose
    new_tokens: int  # to be computed
    found_tokens: int  # before them


@dataclass(slots=True)
class Pod:
    """A pod's state; the loop tells it when things happen."""

    settings: PodSettings  # sizes and speeds
    number: int  # its number
    # requests that have not started, first come first served
    waiting: deque[int] = field(default_factory=deque)
    running: int = 0  # requests that have started: loading, prefilled or answering
    loader_free_s: float = 0.0  # when what is being loaded is on the device
    to_prefill: deque[Prefill] = field(default_factory=deque)  # prompts that wait for their prefill
    prefilling: tuple[int, ...] = ()  # requests of the prefill under way
    version: int = 0  # changes when `next_end_s` does
    _answering: list[tuple[float, int]] = field(default_factory=list)
    _context_tokens: float = 0.0
    _progress_tokens: float = 0.0
    _tokens_per_s: float = 0.0
    _at_s: float = 0.0

    def begin_prefill(self, now_s: float) -> float:
        """Prefill as many waiting prompts as one step takes, or a longer one in several; returns its end."""
        batch = [self.to_prefill.popleft()]
        tokens = batch[0].new_tokens
        while self.to_prefill and tokens + self.to_prefill[0].new_tokens <= self.settings.step_tokens:
            tokens += self.to_prefill[0].new_tokens
            batch.append(self.to_prefill.popleft())
        steps = -(-tokens // self.settings.step_tokens)
        seconds = steps * step_s(self.settings, self._context_tokens) + sum(
            compute_s(self.settings, prefill.new_tokens, prefill.found_tokens) for prefill in batch
        )
        self.prefilling = tuple(prefill.request for prefill in batch)
        self._advance(now_s)
        self._tokens_per_s = steps / seconds
        self.version += 1
        return now_s + seconds

    def end_prefill(self, now_s: float) -> tuple[int, ...]:
        """The prefill is done; its requests have their first token."""
        done, self.prefilling = self.prefilling, ()
        self._resume(now_s)
        return done

    def answer(self, request: int, now_s: float, tokens: int, context_tokens: float) -> None:
        """A request goes on with the `tokens` behind its first one, over `context_tokens` on average."""
        self._advance(now_s)
        heapq.heappush(self._answering, (self._progress_tokens + tokens, request))
        self._context_tokens += context_tokens
        self._resume(now_s)

    def next_end_s(self) -> float:
        """When the next answer is complete if nothing else happens; infinite where none is under way."""
        if not self._answering or not self._tokens_per_s:
            return inf
        return self._at_s + max(0.0, self._answering[0][0] - self._progress_tokens) / self._tokens_per_s

    def complete(self, now_s: float) -> list[int]:
        """The requests whose answers are complete, in the order in which they began to answer."""
        self._advance(now_s)
        done = []
        while self._answering and self._answering[0][0] <= self._progress_tokens + _ROUNDING:
            done.append(heapq.heappop(self._answering)[1])
        return done

    def leave(self, now_s: float, context_tokens: float) -> None:
        """A request that answered has ended."""
        self._context_tokens = max(0.0, self._context_tokens - context_tokens)
        self._resume(now_s)

    def _advance(self, now_s: float) -> None:
        self._progress_tokens += (now_s - self._at_s) * self._tokens_per_s
        self._at_s = now_s

    def _resume(self, now_s: float) -> None:
        self._advance(now_s)
        if not self.prefilling:
            self._tokens_per_s = 1.0 / step_s(self.settings, self._context_tokens)
        self.version += 1
