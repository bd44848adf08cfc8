"""The service that gateways call for each request: it reads what is asked for and picks an engine."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.config.contract import DESTINATION, PRIORITY, REQUEST_ID
from kvtier_scorer.errors import RefusedRequestError
from kvtier_scorer.picker.gateway.bodies import UNKNOWN_PROMPT, hint_places, json_size, prompt_and_body
from kvtier_scorer.picker.gateway.ext_proc.calls import ExtProcCalls
from kvtier_scorer.picker.gateway.hint_gate import HintGate, Translation, is_shed_priority
from kvtier_scorer.picker.gateway.protocol.events import Decision, RequestReceived, ResponseReceived
from kvtier_scorer.picker.observability.logs import LogRateLimiter, printable
from kvtier_scorer.scheduling.model import Pick, PickRequest, Prompt
from kvtier_scorer.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from kvtier_scorer.picker.observability.traces import PickTraces

TokenIds = NDArray[np.uint32]
_LOG: Final = logging.getLogger(__name__)
_HINTS_LOG_INTERVAL_S: Final = 60.0


class Tokenizer(Protocol):
    """Finds the tokens of prompts.

    In two steps, so that nobody holds a parsed body, many times its bytes, while an answer is waited for.
    """

    @property
    def skipped_pods(self) -> int:
        """Pods that are not asked for now, because they do not answer, or too slowly."""

    def tokenize_request(self, prompt: Prompt, body: Mapping[str, Any]) -> bytes | None:
        """What `tokenize` needs to know; None to estimate. Never raises; called on a thread of its own."""

    async def tokenize(self, request: bytes) -> TokenIds | None:
        """The tokens as the engine will see them, or None where they have to be estimated. Never raises."""

    async def close(self) -> None:
        """Lets go of connections."""


class ReadRequest(NamedTuple):
    """A request as it was understood."""

    request: PickRequest
    hints: Translation


class RequestReader:
    """Reads requests: those that take no time at once, the others on one thread, one after the other.

    What a body becomes as objects is many times its size, and is held for one body at a time. Without a
    tokenizer tokens are estimated, which needs no waiting.
    """

    def __init__(self, tokenizer: Tokenizer | None, gate: HintGate | None = None) -> None:
        self._tokenizer = tokenizer
        self._gate = gate or HintGate()
        self._thread = ThreadPoolExecutor(1, "bodies")
        json_size.prepare_reading()
        hint_places.prepare_kernels()

    def read_now(self, event: RequestReceived) -> ReadRequest | None:
        """What is asked for, its tokens estimated; None where `read` has to tell.

        Raises BadRequestError: the body makes no sense.
        """
        body = event.body
        if body is None:
            return self._understood(event, UNKNOWN_PROMPT, {})
        if self._tokenizer is not None or not json_size.is_small(body):
            return None
        return self._understood(event, *prompt_and_body(event.head.path, body))

    async def read(self, event: RequestReceived) -> ReadRequest:
        """What is asked for, with its true tokens where they can be had.

        Raises BadRequestError: the body makes no sense.
        """
        if event.body is None or json_size.is_small(event.body):
            read, to_tokenize = self._read(event)
        else:
            loop = asyncio.get_running_loop()
            read, to_tokenize = await loop.run_in_executor(self._thread, self._read, event)
        if self._tokenizer is None or to_tokenize is None:
            return read
        tokens = await self._tokenizer.tokenize(to_tokenize)
        if tokens is None:
            return read
        request = read.request
        prompt = Prompt(request.prompt.model, request.prompt.salt, b"", tokens)
        return ReadRequest(replace(request, prompt=prompt), read.hints)

    def close(self) -> None:
        """Waits for nothing: what is read now is for nobody."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _read(self, event: RequestReceived) -> tuple[ReadRequest, bytes | None]:
        prompt, fields = prompt_and_body(event.head.path, event.body or b"")
        read = self._understood(event, prompt, fields)
        if self._tokenizer is None or prompt is UNKNOWN_PROMPT or prompt.token_ids is not None:
            return read, None
        return read, self._tokenizer.tokenize_request(prompt, fields)

    def _understood(self, event: RequestReceived, prompt: Prompt, fields: Mapping[str, Any]) -> ReadRequest:
        head = event.head
        hints = self._gate.translate(head, event.body, fields)
        priority = _priority(head.headers.get(PRIORITY))
        return ReadRequest(PickRequest(prompt, head.subset, priority, hints.retain_s), hints)


def _priority(text: str | None) -> int:
    """By which a request is shed; one that is no number is a hint, or a bad one."""
    return int(text) if text is not None and is_shed_priority(text) else 0


@dataclass(frozen=True, slots=True)
class _PickDecision(Decision):
    pick: Pick | None = None


@dataclass(slots=True, kw_only=True)
class ExtProcService(ExtProcCalls):
    """Picks for the requests of gateways, on the scheduler's clock."""

    scheduler: Scheduler
    requests: RequestReader
    clock: Callable[[], float]
    traces: "PickTraces | None" = None
    hints_log: LogRateLimiter = field(
        default_factory=lambda: LogRateLimiter(_LOG, _HINTS_LOG_INTERVAL_S, monotonic)
    )

    @property
    def traced(self) -> bool:
        """Whether there is somebody to tell of picks."""
        return self.traces is not None

    def decide_now(self, event: RequestReceived, begun_s: float) -> Decision | None:
        """Picks a pod at once; None where tokens have to be waited for, or the body is large."""
        read = self.requests.read_now(event)
        return None if read is None else self._pick(event, read, begun_s)

    async def decide(self, event: RequestReceived, begun_s: float) -> Decision:
        """Picks a pod once the request has been read."""
        return self._pick(event, await self.requests.read(event), begun_s)

    def on_response(self, decision: Decision | None, served: ResponseReceived) -> None:
        """A response is on its way: learn which pod it came from, if not from the one that was picked."""
        self.counters.responses[served.status] += 1
        pick = decision.pick if isinstance(decision, _PickDecision) else None
        if pick is not None and served.endpoint and served.endpoint != pick.address:
            self.counters.served_elsewhere += 1
            self.scheduler.record_served_by(pick, served.endpoint)

    def _pick(self, event: RequestReceived, read: ReadRequest, begun_s: float) -> Decision:
        request, hints = read
        span = None if self.traces is None else self.traces.begin(event.head.headers, begun_s)
        if span is None:
            pick = self.scheduler.pick(request, self.clock())
        else:
            pick = self._traced_pick(span, request)
        self.scheduler.record_sent(pick)
        self.counters.count_pick(pick, perf_counter() - begun_s)
        if hints.counts:
            self._count_hints(hints)
        if _LOG.isEnabledFor(logging.DEBUG):
            request_id = event.head.headers.get(REQUEST_ID, "")
            matched = {tier.label: tokens for tier, tokens in pick.matched_tokens.items()}
            _LOG.debug(
                "request %s goes to %s",
                printable(request_id) or "-",
                pick.pod_name,
                extra={
                    "request_id": printable(request_id),
                    "pod": pick.pod_name,
                    "endpoint": pick.address,
                    "model": printable(request.prompt.model),
                    "prompt_tokens": pick.prompt_tokens,
                    "matched_tokens": matched,
                    "score": round(pick.score, 4),
                },
            )
        return _PickDecision(
            {DESTINATION: pick.address}, pick.address, hints.removed_headers, hints.body, pick
        )

    def _count_hints(self, hints: Translation) -> None:
        self.counters.hints.update((count.hint, count.outcome.value) for count in hints.counts)
        for problem in hints.problems:
            self.hints_log.log(logging.INFO, "hints", "a hint is dropped: %s", problem)

    def _traced_pick(self, span: "Span", request: PickRequest) -> Pick:
        """The span has no part of a prompt, and ends with the pick."""
        try:
            pick = self.scheduler.pick(request, self.clock(), reasons=True)
        except RefusedRequestError as error:
            span.set_attribute("error.type", type(error).__name__)
            span.end()
            raise
        span.set_attributes(_attributes(request, pick))
        span.end()
        return pick


def _attributes(request: PickRequest, pick: Pick) -> dict[str, str | int | float]:
    attributes: dict[str, str | int | float] = {
        "gen_ai.request.model": printable(request.prompt.model),
        "kvtier.endpoint": pick.address,
        "kvtier.pod": pick.pod_name,
        "kvtier.prompt_tokens": pick.prompt_tokens,
        "kvtier.score": pick.score,
    }
    attributes |= {
        f"kvtier.matched_tokens.{tier.label}": tokens for tier, tokens in pick.matched_tokens.items()
    }
    if (why := pick.reasons) is not None:
        attributes |= {f"kvtier.score.{name}": score for name, score in why.scores.items()}
        attributes |= {
            "kvtier.candidates": why.candidates,
            "kvtier.queue_depth": why.queue_depth,
            "kvtier.picked_since_reading": why.picked,
            "kvtier.kv_cache_utilization": why.kv_cache_utilization,
        }
    return attributes
