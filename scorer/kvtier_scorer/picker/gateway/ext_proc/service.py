"""The service that gateways call for each request: it picks an engine."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from kvtier_scorer.picker.gateway.ext_proc.calls import ExtProcCalls
from kvtier_scorer.picker.gateway.ext_proc.request_reader import RequestReader
from kvtier_scorer.picker.gateway.protocol.events import Decision, RequestReceived, ResponseReceived
from kvtier_scorer.picker.gateway.protocol.names import DESTINATION, REQUEST_ID
from kvtier_scorer.picker.observability.log_text import printable
from kvtier_scorer.scheduling.model import Pick, PickRequest
from kvtier_scorer.scheduling.scheduler import Scheduler

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _PickDecision(Decision):
    pick: Pick | None = None


@dataclass(slots=True, kw_only=True)
class ExtProcService(ExtProcCalls):
    """Picks for the requests of gateways.

    Attributes:
        scheduler: Picks the pod of each request.
        requests: Reads what requests ask for.
        clock: The scheduler's clock, in seconds.
    """

    scheduler: Scheduler
    requests: RequestReader
    clock: Callable[[], float]

    def decide_now(self, event: RequestReceived, begun_s: float) -> Decision | None:
        """Picks a pod at once; None where tokens have to be waited for, or the body is large."""
        request = self.requests.read_now(event)
        return None if request is None else self._pick(event, request, begun_s)

    async def decide(self, event: RequestReceived, begun_s: float) -> Decision:
        """Picks a pod once the request has been read."""
        return self._pick(event, await self.requests.read(event), begun_s)

    def on_response(self, decision: Decision | None, served: ResponseReceived) -> None:
        """A response is on its way: learn which pod it came from, if not from the one that was picked."""
        self.counters.count_response(served.status)
        pick = decision.pick if isinstance(decision, _PickDecision) else None
        if pick is not None and served.endpoint and served.endpoint != pick.address:
            self.counters.served_elsewhere += 1
            self.scheduler.record_served_by(pick, served.endpoint)

    def _pick(self, event: RequestReceived, request: PickRequest, begun_s: float) -> Decision:
        pick = self.scheduler.pick(request, self.clock())
        self.scheduler.record_sent(pick)
        self.counters.count_pick(pick, perf_counter() - begun_s)
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
        return _PickDecision({DESTINATION: pick.address}, pick.address, pick)
