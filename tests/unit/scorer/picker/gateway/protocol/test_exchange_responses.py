"""One stream of a gateway once the request has its endpoint: the response's messages."""

import pytest
from tests.unit.scorer.picker.gateway.protocol import gateway
from tests.unit.scorer.picker.gateway.protocol.exchanges import (
    BUFFERED,
    FULL_DUPLEX,
    NONE,
    POD,
    REQUEST,
    STREAMED,
    TO_POD,
    answers,
    picked,
)
from tests.unit.scorer.picker.gateway.protocol.gateway import answer, headers_of, kinds

from kvtier_scorer.config.contract import SERVED
from kvtier_scorer.picker.gateway.protocol.events import Reply, ResponseReceived
from kvtier_scorer.picker.gateway.protocol.exchange import Exchange


@pytest.mark.parametrize("end_of_stream", [True, False])
def test_the_client_is_told_which_endpoint_answered(end_of_stream: bool) -> None:
    exchange = picked(REQUEST)
    served, told = exchange.receive(gateway.response_headers(end_of_stream=end_of_stream))
    assert served == ResponseReceived(None, 200)
    assert isinstance(told, Reply)
    assert headers_of(told.messages[0]) == {SERVED: POD}
    assert exchange.finished == end_of_stream
    assert exchange.responding == (not end_of_stream)


@pytest.mark.parametrize(
    ("headers", "metadata", "served"),
    [
        ({SERVED: "10.0.0.8:8000"}, {}, ResponseReceived("10.0.0.8:8000", 200)),
        ({}, {SERVED: "10.0.0.8:8000"}, ResponseReceived("10.0.0.8:8000", 200)),
        (
            {SERVED: "10.0.0.9:1"},
            {SERVED: "10.0.0.8:8000", "other": "x"},
            ResponseReceived("10.0.0.8:8000", 200),
        ),
        ({SERVED: ""}, {"other": "x"}, ResponseReceived(None, 200)),
        ({":status": "503"}, {}, ResponseReceived(None, 503)),
        ({":status": "²00"}, {}, ResponseReceived(None, 0)),
        ({":status": "9" * 5000}, {}, ResponseReceived(None, 0)),
    ],
)
def test_a_response_tells_where_it_comes_from(
    headers: dict[str, str], metadata: dict[str, str], served: ResponseReceived
) -> None:
    events = picked(REQUEST).receive(gateway.response_headers(headers, metadata=metadata))
    assert events[0] == served


def test_nothing_more_is_expected_where_response_bodies_are_not_sent() -> None:
    exchange = picked(gateway.request_headers(end_of_stream=True, response_mode=NONE))
    exchange.receive(gateway.response_headers())
    assert exchange.finished


@pytest.mark.parametrize(
    ("mode", "may_be_on_its_way"), [(FULL_DUPLEX, True), (STREAMED, False), (NONE, False)]
)
def test_a_response_of_which_the_gateway_keeps_no_copy_may_be_on_its_way(
    mode: int, may_be_on_its_way: bool
) -> None:
    exchange = picked(gateway.request_headers(end_of_stream=True, response_mode=mode))
    assert exchange.responding == may_be_on_its_way


@pytest.mark.parametrize("mode", [BUFFERED, STREAMED, 77])
def test_response_bodies_are_let_through_in_any_other_mode(mode: int) -> None:
    exchange = picked(gateway.request_headers(end_of_stream=True, response_mode=mode))
    exchange.receive(gateway.response_headers())
    [told] = answers(exchange.receive(gateway.response_body(b"x", end_of_stream=False)))
    assert not answer(told).response_body.HasField("response")
    assert kinds(answers(exchange.receive(gateway.response_trailers()))) == ["response_trailers"]
    assert exchange.finished


@pytest.mark.parametrize("before", [[gateway.request_headers()], [REQUEST]])
def test_a_gateway_that_answers_by_itself_gets_no_endpoint_after_it(
    exchange: Exchange, before: list[bytes]
) -> None:
    for each in before:
        exchange.receive(each)
    assert kinds(answers(exchange.receive(gateway.response_headers({":status": "413"})))) == [
        "response_headers"
    ]
    assert exchange.answer(TO_POD) == []
    assert exchange.responding
