"""The calls of gateways: their connections, deadlines and faults."""

import asyncio
import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import grpc

from kvtier_scorer.errors import InternalError, RefusedRequestError
from kvtier_scorer.picker.gateway.body_memory import BodyBudget
from kvtier_scorer.picker.gateway.ext_proc.call import Call
from kvtier_scorer.picker.gateway.protocol.errors import GatewayMisconfiguredError, ProtocolError
from kvtier_scorer.picker.gateway.protocol.events import Decision, RequestReceived, ResponseReceived
from kvtier_scorer.picker.gateway.transport.disconnect import disconnect
from kvtier_scorer.picker.gateway.transport.held_calls import HeldCalls, HoldLimits
from kvtier_scorer.picker.gateway.transport.limits import CallTimings
from kvtier_scorer.picker.gateway.transport.premature_resets import BRIEF_S, PrematureResets
from kvtier_scorer.picker.gateway.transport.server import Context, Methods
from kvtier_scorer.picker.observability.counters import PickerCounters
from kvtier_scorer.picker.observability.log_rate_limiter import LogRateLimiter
from kvtier_scorer.picker.observability.log_text import error_location

_PATH: Final = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
_SERVER_ERROR: Final = 500


@dataclass(slots=True, kw_only=True)
class ExtProcCalls(ABC):
    """Serves envoy.service.ext_proc.v3.ExternalProcessor; a subclass decides what becomes of requests.

    Attributes:
        budget: Memory for the bodies of all requests under way.
        uploads: Bytes of bodies that may be on their way: gateways and the transport hold them.
        rate_limited_log: For what may happen with each request, and would fill the log.
        counters: What is counted for `/metrics`.
        timings: How long a call may take.
        hold_limits: How long and how many calls of a connection that resets its calls are held.
        tells_endpoint: Whether responses tell clients which endpoint they came from.
        suspects_resets: Whether a client that resets its calls is held up and cut off; not one beside it,
            which passes on what others do.
        draining: Calls end once neither their request nor their response needs them.
    """

    budget: BodyBudget
    uploads: BodyBudget
    rate_limited_log: LogRateLimiter
    counters: PickerCounters = field(default_factory=PickerCounters)
    timings: CallTimings = field(default_factory=CallTimings)
    hold_limits: HoldLimits = field(default_factory=HoldLimits)
    tells_endpoint: bool = False
    suspects_resets: bool = True
    draining: bool = False
    _calls: set[Call] = field(default_factory=set)
    _resets: PrematureResets = field(default_factory=PrematureResets)
    _held_calls: HeldCalls = field(init=False)

    def __post_init__(self) -> None:
        self._held_calls = HeldCalls(self.hold_limits, self._cut_off)

    @abstractmethod
    def decide_now(self, event: RequestReceived, begun_s: float) -> Decision | None:
        """What becomes of a request; None where reading it takes a while.

        Args:
            event: The request, whole.
            begun_s: When it was (perf_counter).

        Raises:
            RefusedRequestError: The client gets an answer in place of an endpoint.
        """

    @abstractmethod
    async def decide(self, event: RequestReceived, begun_s: float) -> Decision:
        """The same, however long it takes.

        Raises:
            RefusedRequestError: The client gets an answer in place of an endpoint.
        """

    @abstractmethod
    def on_response(self, decision: Decision | None, served: ResponseReceived) -> None:
        """A response is on its way to the client."""

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
        self.counters.count_refusal(error.status)
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
                await self._held_up(peer)

    async def _held_up(self, peer: str) -> None:
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
