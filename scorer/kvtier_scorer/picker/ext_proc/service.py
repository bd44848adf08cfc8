"""One call is one HTTP request of a gateway: a question, its answer, and what became of it."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final

from kvtier_scorer.errors import RefusedRequestError
from kvtier_scorer.picker.ext_proc.requests import pick_request, tokenized
from kvtier_scorer.picker.protocol.errors import GatewayMisconfiguredError, ProtocolError
from kvtier_scorer.picker.protocol.events import Answer, Event, Question, Served
from kvtier_scorer.picker.protocol.exchange import Exchange
from kvtier_scorer.picker.protocol.names import REQUEST_ID
from kvtier_scorer.picker.rpc.call import Method, Reply
from kvtier_scorer.picker.rpc.status import CallError, Status
from kvtier_scorer.picker.tokenization.tokenizer import Tokenizer
from kvtier_scorer.picker.watched.occasionally import Occasionally
from kvtier_scorer.picker.watched.tallies import Tallies
from kvtier_scorer.scheduling.model import Pick, PickRequest
from kvtier_scorer.scheduling.scheduler import Scheduler

_LOG: Final = logging.getLogger(__name__)
_PATH: Final = b"/envoy.service.ext_proc.v3.ExternalProcessor/Process"
_AROUND_BYTES: Final = 1 << 18
"""Of a message, beside a body that comes whole: headers, metadata, attributes."""
_SERVER_ERROR: Final = 500


@dataclass(slots=True)
class ExtProc:
    """The service.

    Attributes:
        scheduler: Picks.
        tallies: Counts.
        max_body_bytes: A larger body is refused.
        tokenizer: Finds true tokens; None to estimate, which needs no waiting.
        clock: Of the scheduler.
        heard: Keeps trouble that comes with each request from filling the log.
        draining: Calls end once neither their request nor their response needs them.
    """

    scheduler: Scheduler
    tallies: Tallies
    max_body_bytes: int
    tokenizer: Tokenizer | None
    clock: Callable[[], float]
    heard: Occasionally
    draining: bool = False
    _calls: "set[_Process]" = field(default_factory=set)

    def methods(self) -> Mapping[bytes, Method]:
        """What a server serves."""
        return {_PATH: Method(self._open, self.max_body_bytes + _AROUND_BYTES)}

    def drain(self) -> None:
        """From now on a call ends once nothing needs it, rather than with the response."""
        self.draining = True
        for call in tuple(self._calls):
            call.end_unless_needed()

    def forget(self, call: "_Process") -> None:
        """A call is over."""
        self._calls.discard(call)

    def pick(self, request: PickRequest, begun_s: float, request_id: str) -> Pick:
        """Pick, count and remember.

        Raises:
            RefusedRequestError: The client gets an answer in place of an endpoint.
        """
        pick = self.scheduler.pick(request, self.clock())
        self.scheduler.sent(pick)
        self.tallies.picked(pick, perf_counter() - begun_s)
        if _LOG.isEnabledFor(logging.DEBUG):
            matched = {tier.label: tokens for tier, tokens in pick.matched_tokens.items()}
            _LOG.debug(
                "request %s goes to %s",
                request_id or "-",
                pick.pod_name,
                extra={
                    "request_id": request_id,
                    "pod": pick.pod_name,
                    "endpoint": pick.address,
                    "model": request.prompt.model,
                    "prompt_tokens": pick.prompt_tokens,
                    "matched_tokens": matched,
                    "score": round(pick.score, 4),
                },
            )
        return pick

    def refused(self, error: RefusedRequestError, request_id: str) -> None:
        """Count a refusal, and tell the operator of those that are not the client's fault."""
        self.tallies.refused(error.status)
        if isinstance(error, GatewayMisconfiguredError):
            level = logging.ERROR
        elif error.status >= _SERVER_ERROR:
            level = logging.WARNING
        else:
            level = logging.DEBUG
        if level == logging.DEBUG or self.heard.may_say(type(error)):
            _LOG.log(
                level,
                "refused with %d: %s",
                error.status,
                error,
                extra={"request_id": request_id, "status": error.status},
            )

    def served(self, pick: Pick | None, served: Served) -> None:
        """A response is on its way: learn which pod it came from, if not from the one that was picked."""
        self.tallies.answered(served.status)
        if pick is not None and served.endpoint and served.endpoint != pick.address:
            self.tallies.served_elsewhere += 1
            self.scheduler.served(pick, served.endpoint)

    def _open(self, reply: Reply) -> "_Process":
        call = _Process(self, reply)
        self._calls.add(call)
        return call


class _Process:
    """One call."""

    __slots__ = ("_exchange", "_half_closed", "_pick", "_reply", "_request_id", "_service", "_task")

    def __init__(self, service: ExtProc, reply: Reply) -> None:
        self._service = service
        self._reply = reply
        self._exchange = Exchange(service.max_body_bytes)
        self._pick: Pick | None = None
        self._request_id = ""
        self._task: asyncio.Task[None] | None = None
        self._half_closed = False

    def message(self, message: bytes) -> None:
        try:
            events = self._exchange.receive(message)
        except ProtocolError as error:
            if self._service.heard.may_say(ProtocolError):
                _LOG.warning("the gateway does not keep to the protocol: %s", error)
            raise CallError(Status.INVALID_ARGUMENT, str(error)) from error
        self._act(events)

    def oversized(self, limit_bytes: int) -> bool:
        del limit_bytes
        self._act(self._exchange.refuse_too_large())
        return True

    def half_closed(self) -> None:
        self._half_closed = True
        if self._task is None:
            self._reply.finish()

    def gone(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._service.forget(self)

    def end_unless_needed(self) -> None:
        """End the call if the request has its endpoint and no response can be cut off by it."""
        if not (self._exchange.picking or self._exchange.responding):
            self._reply.finish()

    def _act(self, events: Iterable[Event]) -> None:
        for event in events:
            if type(event) is Answer:
                self._reply.send(event.messages)
                if event.refused is not None:
                    self._service.refused(event.refused, self._request_id)
            elif type(event) is Question:
                self._ask(event)
            elif type(event) is Served:
                self._service.served(self._pick, event)
                self._pick = None
        if self._exchange.finished:
            self._reply.finish()

    def _ask(self, question: Question) -> None:
        begun_s = perf_counter()
        self._request_id = question.head.headers.get(REQUEST_ID, "")
        try:
            request = pick_request(question)
            if self._service.tokenizer is not None and question.body is not None:
                self._task = asyncio.get_running_loop().create_task(
                    self._tokenize(request, question.body, self._service.tokenizer, begun_s)
                )
                return
            self._answer(request, begun_s)
        except RefusedRequestError as error:
            self._refuse(error)

    async def _tokenize(
        self, request: PickRequest, body: bytes, tokenizer: Tokenizer, begun_s: float
    ) -> None:
        try:
            self._answer(await tokenized(request, body, tokenizer), begun_s)
        except RefusedRequestError as error:
            self._refuse(error)
        except Exception:  # noqa: BLE001 - a fault of one call must be seen, and end no other
            _LOG.exception("a request could not be picked for")
            self._reply.finish(Status.INTERNAL, "internal error of the picker; its log says more")
        self._task = None
        if self._half_closed or self._exchange.finished:
            self._reply.finish()

    def _answer(self, request: PickRequest, begun_s: float) -> None:
        service = self._service
        self._pick = pick = service.pick(request, begun_s, self._request_id)
        self._reply.send(self._exchange.answer(pick.address))
        if service.draining:
            self.end_unless_needed()

    def _refuse(self, error: RefusedRequestError) -> None:
        self._service.refused(error, self._request_id)
        self._reply.send(self._exchange.refuse(error))
