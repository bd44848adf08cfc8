"""The calls of gateways: each is one HTTP request, a question, its answer, and what became of it.

The next message is read when the last one has been handled and its answer is on its way: what a gateway sends
meanwhile waits in its own memory, held back by HTTP/2's flow control.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from time import monotonic, perf_counter
from typing import Final

import grpc

from kvtier_scorer.config.contract import TRACE_PARENT
from kvtier_scorer.errors import BudgetSpentError, InternalError, RefusedRequestError
from kvtier_scorer.picker.gateway.body_memory import BodyBudget
from kvtier_scorer.picker.gateway.protocol.events import (
    Decision,
    GatewayMisconfiguredError,
    ProtocolError,
    Reply,
    RequestReceived,
    ResponseReceived,
)
from kvtier_scorer.picker.gateway.protocol.exchange import Exchange
from kvtier_scorer.picker.gateway.transport.connections import (
    BRIEF_S,
    HeldCalls,
    HoldLimits,
    PrematureResets,
    disconnect,
)
from kvtier_scorer.picker.gateway.transport.server import CallTimings, Context, Methods
from kvtier_scorer.picker.observability.counters import PickerCounters
from kvtier_scorer.picker.observability.logs import LogRateLimiter, error_location

_NEVER: Final = float("inf")
_PATH: Final = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
_SERVER_ERROR: Final = 500
_WINDOW_BYTES: Final = 65_535
"""Of an answer, that HTTP/2 lets go before a gateway has taken anything of it."""


class Call:
    """One call of a gateway."""

    __slots__ = (
        "_beginning", "_context", "_decision", "_evicted", "_exchange", "_interrupted", "_reading",
        "_refusal", "_service", "_share", "_task", "_upload", "answered", "due_s",
    )  # fmt: skip

    def __init__(self, service: "ExtProcCalls", context: Context) -> None:
        self.answered = False  # whether an answer is on its way
        # when, on the monotonic clock, the gateway must have done what is waited for
        self.due_s = monotonic() + service.timings.first_message_s
        self._service = service
        self._context = context
        self._share = service.budget.share()
        self._share.on_evicted = self._on_evicted
        self._upload = service.uploads.share()
        self._upload.on_evicted = self._on_evicted
        self._exchange = Exchange(self._share, self._upload, tells_endpoint=service.tells_endpoint)
        self._decision: Decision | None = None
        self._task: asyncio.Task[object] | None = None
        self._reading = False
        self._beginning = False
        self._evicted = False
        self._interrupted = False
        self._refusal: RefusedRequestError | None = None

    async def run(self) -> None:
        """Answer messages until nothing more is to come."""
        self._task = asyncio.current_task()
        try:
            await self._converse()
        except asyncio.CancelledError:
            if not self._interrupted:
                raise  # by the gateway
            assert self._task is not None  # noqa: S101 - it has just been cancelled
            self._task.uncancel()
            if self._refusal is not None:
                await self._send(self._refuse(self._refusal))
        finally:
            self._share.release()
            self._upload.release()
        if self.due_s < monotonic():
            await self._context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the gateway took too long")

    def end_unless_needed(self) -> None:
        """End the call if the request has its endpoint and no response can be cut off by it."""
        if self._reading and not self._is_needed:
            self._interrupt()

    def end_late(self) -> None:
        """End the call: the gateway has not done in time what was waited for."""
        self._interrupt()

    @property
    def _is_needed(self) -> bool:
        return self._exchange.picking or self._exchange.responding

    def _on_evicted(self) -> None:
        """Others needed the memory of this body, which is on its way in or out."""
        if self._exchange.picking:
            self._refusal = BudgetSpentError("too much is on its way at once; send it again later")
        if self._beginning:
            self._evicted = True
        else:
            self._interrupt()

    def _interrupt(self) -> None:
        if self._task is not None and not self._interrupted:
            self._interrupted = True
            self._task.cancel()

    async def _converse(self) -> None:
        read, exchange, service = self._context.read, self._exchange, self._service
        while not exchange.finished and (self._is_needed or not service.draining):
            self._reading = True
            message: object = await read()
            self._reading = False
            self.due_s = _NEVER
            if message is grpc.aio.EOF:
                return
            assert isinstance(message, bytes)  # noqa: S101 - grpcio deserializes nothing here
            await self._take(message)
            if exchange.picking:
                self.due_s = monotonic() + service.timings.next_message_s

    async def _take(self, message: bytes) -> None:
        try:
            events = self._exchange.receive(message)
        except ProtocolError as error:
            self._service.on_protocol_error(error)
            await self._context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except Exception as error:  # noqa: BLE001 - a fault of one request must end no other
            await self._send(self._refuse(error))
            return
        for event in events:
            if type(event) is Reply:
                if event.refused is not None:
                    self._service.on_refusal(event.refused)
                await self._send(event.messages)
            elif type(event) is RequestReceived:
                await self._ask(event)
            elif type(event) is ResponseReceived:
                self._service.on_response(self._decision, event)
                self._decision = None

    async def _ask(self, event: RequestReceived) -> None:
        begun_s = perf_counter()
        service, share, upload = self._service, self._share, self._upload
        if service.traced:
            event = event.within(_trace_parent(self._context))
        try:
            decision = service.decide_now(event, begun_s)
            if decision is None:
                share.pinned = upload.pinned = True
                decision = await service.decide(event, begun_s)
            # what becomes of the response needs no body, and may take long
            self._decision = decision if decision.body is None else replace(decision, body=None)
            answers: Iterable[bytes] = self._exchange.answer(decision)
        except Exception as error:  # noqa: BLE001 - the request gets an answer, whatever it is
            answers = self._refuse(error)
        share.pinned = upload.pinned = False
        await self._send(answers)
        share.release()
        upload.release()

    def _refuse(self, error: Exception) -> list[bytes]:
        refused = error if isinstance(error, RefusedRequestError) else self._service.on_error(error)
        self._service.on_refusal(refused)
        return self._exchange.refuse(refused)

    async def _send(self, messages: Iterable[bytes]) -> None:
        """Send answers; when it returns, the gateway has taken them."""
        write, write_s = self._context.write, self._service.timings.write_s
        for message in messages:
            self.due_s = monotonic() + write_s
            if self.answered:
                await write(message)
            else:
                self.answered = True  # a gateway may have it, and be gone, before this is told
                await self._begin_answer(message)
        self.due_s = _NEVER

    async def _begin_answer(self, message: bytes) -> None:
        """Send the first message: while it is on its way with the head, grpcio cannot end the call."""
        share, upload = self._share, self._upload
        if share.held_bytes > _WINDOW_BYTES:  # the head goes alone, for the rest to give way at any time
            share.pinned = upload.pinned = True
            await self._context.send_initial_metadata(())
            share.pinned = upload.pinned = False
            await self._context.write(message)
            return
        self._beginning = True
        await self._context.write(message)
        self._beginning = False
        if self._evicted:
            self._interrupted = True
            raise asyncio.CancelledError


def _trace_parent(context: Context) -> str | None:
    """The gateway's span of this call: Envoy writes it into the request's own header after the picker."""
    metadata = context.invocation_metadata() or ()
    return next((str(value) for name, value in metadata if name == TRACE_PARENT), None)


@dataclass(slots=True, kw_only=True)
class ExtProcCalls(ABC):
    """Serves envoy.service.ext_proc.v3.ExternalProcessor; a subclass decides what becomes of requests."""

    budget: BodyBudget  # memory for the bodies of all requests under way
    uploads: BodyBudget  # bytes of bodies that may be on their way: gateways and the transport hold them
    rate_limited_log: LogRateLimiter  # for what may happen with each request, and would fill the log
    counters: PickerCounters = field(default_factory=PickerCounters)
    timings: CallTimings = field(default_factory=CallTimings)
    hold_limits: HoldLimits = field(default_factory=HoldLimits)
    tells_endpoint: bool = False  # whether responses tell clients which endpoint they came from
    # whether a client that resets its calls is held up and cut off; not one beside it, which passes on what
    # others do
    suspects_resets: bool = True
    draining: bool = False  # calls end once neither their request nor their response needs them
    _calls: set[Call] = field(default_factory=set)
    _resets: PrematureResets = field(default_factory=PrematureResets)
    _held_calls: HeldCalls = field(init=False)

    def __post_init__(self) -> None:
        self._held_calls = HeldCalls(self.hold_limits, self._cut_off)

    @abstractmethod
    def decide_now(self, event: RequestReceived, begun_s: float) -> Decision | None:
        """What becomes of a request that came whole at `begun_s`; None where reading it takes a while.

        Raises RefusedRequestError: the client gets an answer in place of an endpoint.
        """

    @abstractmethod
    async def decide(self, event: RequestReceived, begun_s: float) -> Decision:
        """The same, however long it takes."""

    @abstractmethod
    def on_response(self, decision: Decision | None, served: ResponseReceived) -> None:
        """A response is on its way to the client."""

    @property
    def traced(self) -> bool:
        """Whether the trace that a request is part of is looked for."""
        return False

    @property
    def calls(self) -> int:
        """Calls that are open."""
        return len(self._calls)

    def methods(self) -> Methods:
        """What a server serves."""
        return {_PATH: grpc.stream_stream_rpc_method_handler(self._process)}

    def drain(self) -> None:
        """The picker is stopping: ends each call as soon as its request and response no longer need it."""
        self.draining = True
        self._held_calls.release()
        for call in tuple(self._calls):
            call.end_unless_needed()

    async def enforce_deadlines(self) -> None:
        """Ends, until it is cancelled, calls whose gateway does not do what is waited for.

        One look a second at all calls costs less than a timer for each message.
        """
        while True:
            await asyncio.sleep(self.timings.check_interval_s)
            now_s = monotonic()
            for call in tuple(self._calls):
                if call.due_s < now_s:
                    call.end_late()

    def on_refusal(self, error: RefusedRequestError) -> None:
        """Counts a refusal and logs it, each kind of refusal at most once in a while."""
        self.counters.refusals[error.status] += 1
        if isinstance(error, InternalError):
            return  # `on_error` has logged it
        if isinstance(error, GatewayMisconfiguredError):
            level = logging.ERROR
        elif error.status >= _SERVER_ERROR:
            level = logging.WARNING
        else:
            level = logging.INFO
        self.rate_limited_log.log(level, type(error), "refused with %d: %s", error.status, error)

    def on_error(self, error: Exception) -> InternalError:
        """Logs an error of the picker itself; the request is answered with the error that is returned."""
        self.rate_limited_log.log(
            logging.ERROR, type(error), "a request could not be answered: %s", error_location(error)
        )
        return InternalError()

    def on_protocol_error(self, error: ProtocolError) -> None:
        """Logs that a gateway does not keep to the protocol."""
        self.rate_limited_log.log(
            logging.WARNING, ProtocolError, "the gateway does not keep to the protocol: %s", error
        )

    async def _process(self, _: object, context: Context) -> None:
        peer, begun_s = context.peer(), monotonic()
        call: Call | None = None
        premature = False
        try:
            if self._resets.is_suspect(peer):
                await asyncio.sleep(self.timings.suspect_delay_s)
            call = Call(self, context)
            self._calls.add(call)
            await call.run()
        except asyncio.CancelledError:
            premature = (call is None or not call.answered) and monotonic() - begun_s < BRIEF_S
            raise
        finally:
            if call is not None:
                self._calls.discard(call)
            if self.suspects_resets:
                self._resets.count_call(peer, premature=premature)
            if premature and self._resets.is_suspect(peer) and not self.draining:
                await self._hold_up(peer)

    async def _hold_up(self, peer: str) -> None:
        if self._held_calls.is_full:
            self._cut_off(peer)
        else:
            await self._held_calls.hold(peer)

    def _cut_off(self, peer: str) -> None:
        """End the connection of a client that resets its calls, if it has not changed for the better."""
        if not self._resets.is_suspect(peer):
            return
        self._resets.forget(peer)  # gone by itself or not: its port may be another client's next
        if disconnect(peer):
            self.counters.connections_cut_off += 1
            self.rate_limited_log.log(
                logging.WARNING,
                ConnectionAbortedError,
                "the connection of %s is ended: it reset most of its calls before they were answered",
                peer,
            )
