"""The event loop: sends a trace's requests to the pods that a policy picks, and each pod over time.

A pod has a queue and one prefill at a time. Answers advance as a fluid: all running ones gain tokens at one
speed, which changes when a request joins, leaves or is prefilled. A step that prefills also gives each of
them its one token.
"""

import heapq
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from math import inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.simulate.blocks import Blocks
from kvtier_scorer.simulate.caches import Caches
from kvtier_scorer.simulate.policy import Loads, Policy
from kvtier_scorer.simulate.settings import PodSettings, PoolSettings, compute_s, load_s, step_s
from kvtier_scorer.simulate.store_traffic import MARGIN, STEP_S, StoreTraffic
from kvtier_scorer.simulate.trace import Trace

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


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Arrays with one element a request."""

    trace: Trace  # the requests
    pods: int  # how many pods there were
    block_tokens: int  # tokens in a block
    pod: NDArray[np.int64]  # where each went (int64)
    sent_s: NDArray[np.float64]  # when each was sent (float64)
    first_token_s: NDArray[np.float64]  # when its first token came (float64)
    end_s: NDArray[np.float64]  # when its last one did (float64)
    hit_tokens: NDArray[np.int64]  # found in each tier, shape (tiers, requests) (int64)
    started: list[int] = field(default_factory=list)  # requests in the order in which their pods started them

    @classmethod
    def empty(cls, trace: Trace, pods: int, block_tokens: int) -> Self:
        """Before anything happened: pods are -1 and times NaN."""
        requests = len(trace)
        sent_s, first_token_s, end_s = (np.full(requests, np.nan) for _ in range(3))
        hit_tokens = np.zeros((len(Tier), requests), np.int64)
        pod = np.full(requests, -1, np.int64)
        return cls(trace, pods, block_tokens, pod, sent_s, first_token_s, end_s, hit_tokens)

    def start(self, request: int, hits: Mapping[Tier, int]) -> None:
        """A request's pod starts it."""
        self.started.append(request)
        self.hit_tokens[:, request] = [hits[tier] * self.block_tokens for tier in Tier]

    @property
    def ttft_s(self) -> NDArray[np.float64]:
        """Seconds until each first token, waiting included (float64)."""
        return self.first_token_s - self.sent_s


class _Kind(IntEnum):
    """What happens; of what happens at the same time, the smaller first."""

    ANSWERED = 0
    PREFILLED = 1
    LOADED = 2
    SENT = 3


class Simulation:
    """One policy's run of one trace; `report` is called for every request that has ended."""

    def __init__(
        self, pool: PoolSettings, blocks: Blocks, policy: Policy, report: Callable[[], None] | None = None
    ) -> None:
        self._settings = pool.pod
        self._trace = blocks.trace
        self._block_tokens = blocks.block_tokens
        self._policy = policy
        self._report = report
        self._pods = [Pod(pool.pod, number) for number in range(pool.pods)]
        self._caches = Caches(pool, blocks, policy.listener)
        self._traffic = StoreTraffic(pool.store, pool.pods) if pool.store else None
        self._loads = Loads(pool.pods, pool.scrape_interval_s)
        self._in_use = [0] * pool.pods
        self._events: list[tuple[float, int, int, int, int]] = []
        self._count = 0
        self._sent = 0
        requests = len(blocks.trace)
        self._outcome = SimulationResult.empty(blocks.trace, pool.pods, blocks.block_tokens)
        self._prefills: list[Prefill | None] = [None] * requests

    @property
    def caches(self) -> Caches:
        """The true caches, for a look inside."""
        return self._caches

    def run(self) -> SimulationResult:
        """Replay the whole trace."""
        trace = self._trace
        if trace.time_s is None:
            for _ in range(min(trace.concurrency or 1, len(trace))):
                self._send_next(0.0)
        else:
            self._send_next(float(trace.time_s[0]))
        while self._events:
            now_s, kind, _, who, what = heapq.heappop(self._events)
            if kind == _Kind.SENT:
                self._arrive(who, now_s)
            elif kind == _Kind.LOADED:
                self._ready(self._pods[who], what, now_s)
            elif kind == _Kind.PREFILLED:
                self._end_prefill(self._pods[who], now_s)
            elif what == self._pods[who].version:
                self._end_answers(self._pods[who], now_s)
        return self._outcome

    def _push(self, at_s: float, kind: _Kind, who: int, what: int = 0) -> None:
        self._count += 1
        heapq.heappush(self._events, (at_s, kind, self._count, who, what))

    def _send_next(self, at_s: float) -> None:
        if self._sent < len(self._trace):
            self._push(at_s, _Kind.SENT, self._sent)
            self._sent += 1

    def _arrive(self, request: int, now_s: float) -> None:
        if self._trace.time_s is not None and self._sent < len(self._trace):
            self._send_next(float(self._trace.time_s[self._sent]))
        self._loads.read(now_s)
        number = self._policy.pick(request, self._loads, now_s)
        pod = self._pods[number]
        self._outcome.pod[request] = number
        self._outcome.sent_s[request] = now_s
        pod.waiting.append(request)
        self._start(pod, now_s)

    def _start(self, pod: Pod, now_s: float) -> None:
        """Start waiting requests while there is room, first come first served: vLLM does not skip one."""
        while pod.waiting and pod.running < self._settings.max_running:
            request = pod.waiting[0]
            started = self._caches.start(pod.number, request, partial(self._reading_pays, pod, now_s))
            if started is None:
                break
            hits, self._in_use[pod.number] = started
            pod.waiting.popleft()
            pod.running += 1
            self._outcome.start(request, hits)
            hit_tokens = sum(hits.values()) * self._block_tokens
            prefill = Prefill(request, int(self._trace.prompt_tokens[request]) - hit_tokens, hit_tokens)
            to_load = {tier: hits[tier] for tier in OF_A_POD[1:]}
            remote = hits[Tier.REMOTE]
            to_load[Tier.CPU] += remote  # which goes through the pod's memory
            if any(to_load.values()):
                begin_s = max(now_s, pod.loader_free_s)
                pod.loader_free_s = begin_s + load_s(self._settings, to_load)
                loaded_s = pod.loader_free_s
                if self._traffic is not None and remote:
                    loaded_s = max(loaded_s, self._traffic.read(pod.number, self._bytes(remote), now_s))
                self._prefills[request] = prefill
                self._push(loaded_s, _Kind.LOADED, pod.number, request)
            else:
                pod.to_prefill.append(prefill)
        self._publish(pod, now_s)
        self._prefill(pod, now_s)

    def _reading_pays(self, pod: Pod, now_s: float, hits: Mapping[Tier, int]) -> bool:
        """Whether what was found in the store is there sooner than it would be computed."""
        if self._traffic is None:
            return False
        remote_tokens = hits[Tier.REMOTE] * self._block_tokens
        before = (sum(hits.values()) - hits[Tier.REMOTE]) * self._block_tokens
        read_s = self._traffic.read_by(pod.number, self._bytes(hits[Tier.REMOTE]), now_s) - now_s
        return read_s < compute_s(self._settings, remote_tokens, before) / MARGIN - STEP_S

    def _bytes(self, blocks: int) -> int:
        return blocks * self._settings.block_bytes

    def _ready(self, pod: Pod, request: int, now_s: float) -> None:
        prefill = self._prefills[request]
        if prefill is not None:
            pod.to_prefill.append(prefill)
        self._prefill(pod, now_s)

    def _prefill(self, pod: Pod, now_s: float) -> None:
        if pod.to_prefill and not pod.prefilling:
            self._push(pod.begin_prefill(now_s), _Kind.PREFILLED, pod.number)
            self._schedule_end(pod)

    def _end_prefill(self, pod: Pod, now_s: float) -> None:
        ended = []
        for request in pod.end_prefill(now_s):
            self._outcome.first_token_s[request] = now_s
            self._caches.offload_prompt(pod.number, request, now_s)
            tokens = int(self._trace.output_tokens[request])
            if tokens > 1:
                pod.answer(request, now_s, tokens - 1, self._context(request))
            else:
                ended.append(request)
        self._end(pod, ended, now_s)

    def _end_answers(self, pod: Pod, now_s: float) -> None:
        ended = pod.complete(now_s)
        for request in ended:
            pod.leave(now_s, self._context(request))
        self._end(pod, ended, now_s)

    def _end(self, pod: Pod, ended: list[int], now_s: float) -> None:
        for request in ended:
            self._outcome.end_s[request] = now_s
            self._in_use[pod.number] = self._caches.end(pod.number, request, now_s)
            pod.running -= 1
            if self._report is not None:
                self._report()
        self._start(pod, now_s)
        self._schedule_end(pod)
        if self._trace.time_s is None:
            for _ in ended:
                self._send_next(now_s)

    def _schedule_end(self, pod: Pod) -> None:
        end_s = pod.next_end_s()
        if end_s != float("inf"):
            self._push(end_s, _Kind.ANSWERED, pod.number, pod.version)

    def _publish(self, pod: Pod, now_s: float) -> None:
        self._loads.change(
            pod.number,
            now_s,
            queue_depth=len(pod.waiting),
            running=pod.running,
            utilization=self._in_use[pod.number] / self._settings.blocks[Tier.GPU],
        )

    def _context(self, request: int) -> float:
        """Tokens whose KV is read for each of a request's answer tokens, on average."""
        return float(self._trace.prompt_tokens[request] + self._trace.output_tokens[request] / 2)
