"""Exchanges for the tests of streams."""

from collections.abc import Sequence

from envoy.extensions.filters.http.ext_proc.v3.processing_mode_pb2 import ProcessingMode
from tests.unit.scorer.picker.gateway.protocol import gateway

from kvtier_scorer.config.contract import DESTINATION
from kvtier_scorer.picker.gateway.body_memory import BodyBudget
from kvtier_scorer.picker.gateway.protocol.events import Decision, Reply
from kvtier_scorer.picker.gateway.protocol.exchange import Exchange

POD = "10.0.0.7:8000"
TO_POD = Decision({DESTINATION: POD}, POD)
LIMIT = 1 << 20
BUFFERED = ProcessingMode.BUFFERED
FULL_DUPLEX = ProcessingMode.FULL_DUPLEX_STREAMED
STREAMED = ProcessingMode.STREAMED
NONE = ProcessingMode.NONE
REQUEST = gateway.request_headers(end_of_stream=True)


def new_exchange(budget: BodyBudget, uploads: BodyBudget | None = None) -> Exchange:
    """One that tells clients where their answer comes from."""
    return Exchange(budget.share(), (uploads or budget).share(), tells_endpoint=True)


def answers(events: Sequence[object]) -> list[bytes]:
    """Messages of the one Answer that there is."""
    [told] = [event for event in events if isinstance(event, Reply)]
    return told.messages


def picked(*messages: bytes) -> Exchange:
    """An exchange whose request has its endpoint."""
    exchange = new_exchange(BodyBudget(2 * LIMIT, LIMIT, float))
    for message in messages:
        exchange.receive(message)
    exchange.answer(TO_POD)
    return exchange
