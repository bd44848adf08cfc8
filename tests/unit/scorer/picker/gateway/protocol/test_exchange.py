"""One stream of a gateway: its messages in, the picker's answers out."""

import itertools
import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scorer.picker.gateway.protocol import gateway
from tests.unit.scorer.picker.gateway.protocol.exchanges import (
    BUFFERED,
    FULL_DUPLEX,
    LIMIT,
    NONE,
    POD,
    REQUEST,
    STREAMED,
    TO_POD,
    answers,
    new_exchange,
)
from tests.unit.scorer.picker.gateway.protocol.gateway import answer, destination_of, headers_of, kinds

from kvtier_scorer.config.contract import DESTINATION
from kvtier_scorer.errors import (
    BadRequestError,
    BudgetSpentError,
    NoEndpointError,
    RefusedRequestError,
    SaturatedError,
    TooLargeError,
)
from kvtier_scorer.picker.gateway.body_memory import BodyBudget, BodyShare
from kvtier_scorer.picker.gateway.protocol.events import (
    Decision,
    GatewayMisconfiguredError,
    ProtocolError,
    Reply,
    RequestReceived,
)
from kvtier_scorer.picker.gateway.protocol.exchange import Exchange
from kvtier_scorer.picker.gateway.protocol.messages import CHUNK_BYTES


def test_headers_wait_for_the_end_of_a_streamed_body(exchange: Exchange) -> None:
    assert exchange.receive(gateway.request_headers({"x-request-id": "7", "cookie": "c"})) == []
    assert exchange.receive(gateway.request_body(b"first ", end_of_stream=False)) == []
    assert exchange.picking
    [question] = exchange.receive(gateway.request_body(b"second"))
    assert isinstance(question, RequestReceived)
    assert question.body == b"first second"
    assert (question.head.path, question.head.subset) == (gateway.PATH, None)
    assert question.head.headers == {"x-request-id": "7"}, "only headers that matter to a picker"
    head, body = exchange.answer(TO_POD)
    assert answer(head).request_headers.response.clear_route_cache
    assert destination_of(head) == POD
    assert headers_of(head)["content-length"] == "12"
    streamed = answer(body).request_body.response.body_mutation.streamed_response
    assert (streamed.body, streamed.end_of_stream) == (b"first second", True)
    assert (exchange.picking, exchange.finished) == (False, False)


def test_a_gateway_that_does_not_tell_its_modes_streams(exchange: Exchange) -> None:
    assert exchange.receive(gateway.request_headers(mode=None)) == []
    assert exchange.receive(gateway.request_body(b"x"))
    assert kinds(list(exchange.answer(TO_POD))) == ["request_headers", "request_body"]


def test_the_headers_of_a_buffered_body_are_let_through_first(exchange: Exchange) -> None:
    events = exchange.receive(gateway.request_headers(mode=BUFFERED))
    assert kinds(answers(events)) == ["request_headers"]
    [question] = exchange.receive(gateway.request_body(b"all", end_of_stream=False))
    assert isinstance(question, RequestReceived)
    assert question.body == b"all"
    [told] = exchange.answer(TO_POD)
    assert kinds([told]) == ["request_body"]
    assert destination_of(told) == POD
    assert not answer(told).request_body.response.HasField("body_mutation"), "the body stays as it is"
    assert kinds(answers(exchange.receive(gateway.request_trailers()))) == ["request_trailers"]


def test_a_body_that_changes_goes_on_in_place_of_the_clients(exchange: Exchange) -> None:
    changed = Decision({DESTINATION: POD}, POD, ("x-kvtier-retain",), b"changed")
    exchange.receive(gateway.request_headers({"content-length": "3"}))
    exchange.receive(gateway.request_body(b"all"))
    head, body = exchange.answer(changed)
    assert headers_of(head)["content-length"] == "7"
    assert list(answer(head).request_headers.response.header_mutation.remove_headers) == ["x-kvtier-retain"]
    streamed = answer(body).request_body.response.body_mutation.streamed_response
    assert (streamed.body, streamed.end_of_stream) == (b"changed", True)


def test_a_buffered_body_that_changes_is_sent_with_its_endpoint(exchange: Exchange) -> None:
    changed = Decision({DESTINATION: POD}, POD, ("x-kvtier-retain",), b"changed")
    exchange.receive(gateway.request_headers(mode=BUFFERED))
    exchange.receive(gateway.request_body(b"all"))
    [told] = exchange.answer(changed)
    common = answer(told).request_body.response
    assert destination_of(told) == POD
    assert common.body_mutation.body == b"changed"
    assert headers_of(told)["content-length"] == "7"
    assert list(common.header_mutation.remove_headers) == ["x-kvtier-retain"]


@pytest.mark.parametrize("mode", [FULL_DUPLEX, BUFFERED])
@pytest.mark.parametrize("announced", [{"content-length": str(LIMIT)}, {}], ids=["announced", "unannounced"])
def test_whoever_is_on_its_way_with_most_for_longest_is_refused(announced: dict[str, str], mode: int) -> None:
    now_s = 0.0
    uploads = BodyBudget(2 * LIMIT, LIMIT, lambda: now_s)
    shares = [uploads.share() for _ in range(2)]
    lost: list[BodyShare] = []
    for share in shares:
        share.on_evicted = partial(lost.append, share)
        slow = Exchange(BodyBudget(LIMIT, LIMIT, float).share(), share)
        slow.receive(gateway.request_headers(announced, mode=mode))
        now_s += 1.0
    quick = new_exchange(BodyBudget(2 * LIMIT, LIMIT, float), uploads)
    quick.receive(gateway.request_headers({"content-length": "10"}, mode=mode))
    assert quick.picking
    assert lost == shares[:1]


@pytest.mark.parametrize("mode", [FULL_DUPLEX, BUFFERED, STREAMED, NONE])
def test_a_request_without_a_body_is_answered_at_once(exchange: Exchange, mode: int) -> None:
    [question] = exchange.receive(gateway.request_headers(end_of_stream=True, mode=mode))
    assert isinstance(question, RequestReceived)
    assert question.body is None
    [told] = exchange.answer(TO_POD)
    assert kinds([told]) == ["request_headers"]
    assert destination_of(told) == POD
    assert "content-length" not in headers_of(told)


@pytest.mark.parametrize("parts", [[b"body"], []])
def test_trailers_end_a_streamed_body(exchange: Exchange, parts: list[bytes]) -> None:
    exchange.receive(gateway.request_headers())
    for part in parts:
        exchange.receive(gateway.request_body(part, end_of_stream=False))
    [question] = exchange.receive(gateway.request_trailers())
    assert isinstance(question, RequestReceived)
    assert question.body == b"".join(parts)
    told = list(exchange.answer(TO_POD))
    assert kinds(told) == ["request_headers", "request_body", "request_trailers"]
    assert not answer(told[1]).request_body.response.body_mutation.streamed_response.end_of_stream


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 5 * CHUNK_BYTES])
def test_a_body_goes_on_in_chunks_that_envoy_takes(exchange: Exchange, size: int) -> None:
    body = bytes(itertools.islice(itertools.cycle(range(251)), size))
    exchange.receive(gateway.request_headers())
    exchange.receive(gateway.request_body(body))
    head, *chunks = exchange.answer(TO_POD)
    check_chunks([answer(chunk).request_body for chunk in chunks], body)
    assert headers_of(head)["content-length"] == str(size)
    exchange.receive(gateway.response_headers())
    chunks = answers(exchange.receive(gateway.response_body(body)))
    check_chunks([answer(chunk).response_body for chunk in chunks], body)


def check_chunks(chunks: list[object], body: bytes) -> None:
    streamed = [chunk.response.body_mutation.streamed_response for chunk in chunks]  # type: ignore[attr-defined]
    assert b"".join(each.body for each in streamed) == body
    assert all(len(each.body) <= 62_000 for each in streamed)
    assert [each.end_of_stream for each in streamed] == [False] * (len(streamed) - 1) + [True]
    assert len(streamed) == max(1, -(-len(body) // CHUNK_BYTES))


@pytest.mark.parametrize(
    ("subset", "allowed"),
    [
        (["10.0.0.7:8000", "10.0.0.8"], frozenset({"10.0.0.7:8000", "10.0.0.8"})),
        (" 10.0.0.7:8000, 10.0.0.8:8000,,", frozenset({"10.0.0.7:8000", "10.0.0.8:8000"})),
        ([], frozenset()),
        ("", frozenset()),
    ],
)
def test_a_subset_is_a_list_or_a_text(
    exchange: Exchange, subset: list[str] | str, allowed: frozenset[str]
) -> None:
    [question] = exchange.receive(gateway.request_headers(end_of_stream=True, subset=subset))
    assert isinstance(question, RequestReceived)
    assert question.head.subset == allowed


@pytest.mark.parametrize(
    ("refused", "status", "kind"),
    [
        (BadRequestError("model: is required"), 400, "invalid_request_error"),
        (TooLargeError("too large"), 413, "invalid_request_error"),
        (SaturatedError("busy"), 429, "rate_limit_error"),
        (NoEndpointError("nobody"), 503, "service_unavailable_error"),
    ],
)
def test_a_refusal_is_an_answer_in_openais_shape(
    exchange: Exchange, refused: RefusedRequestError, status: int, kind: str
) -> None:
    exchange.receive(gateway.request_headers(end_of_stream=True))
    [told] = exchange.refuse(refused)
    immediate = answer(told).immediate_response
    assert immediate.status.code == status
    error = {"message": str(refused), "type": kind, "param": None, "code": status}
    assert json.loads(immediate.body) == {"error": error}
    assert headers_of(told)["content-type"] == "application/json"
    assert ("retry-after" in headers_of(told)) == (status == 429)
    assert exchange.finished
    assert exchange.receive(b"whatever comes") == []
    assert exchange.answer(TO_POD) == exchange.refuse(refused) == []


@pytest.mark.parametrize(("mode", "name"), [(NONE, "NONE"), (STREAMED, "STREAMED"), (77, "77")])
def test_a_mode_in_which_prompts_cannot_be_seen_is_refused(exchange: Exchange, mode: int, name: str) -> None:
    [event] = exchange.receive(gateway.request_headers(mode=mode))
    assert isinstance(event, Reply)
    assert isinstance(event.refused, GatewayMisconfiguredError)
    assert f"request_body_mode is {name};" in str(event.refused)
    assert kinds(event.messages) == ["immediate_response"]
    assert exchange.finished


@pytest.mark.parametrize("length", [str(LIMIT + 1), "9" * 18])
def test_a_body_that_is_announced_too_large_is_refused_before_it_comes(
    exchange: Exchange, length: str
) -> None:
    [event] = exchange.receive(gateway.request_headers({"content-length": length}))
    assert isinstance(event, Reply)
    assert isinstance(event.refused, TooLargeError)


@pytest.mark.parametrize("length", [str(LIMIT), "", "-1", "many", "²", "9" * 5000])
def test_another_length_is_left_to_the_body(exchange: Exchange, length: str) -> None:
    assert exchange.receive(gateway.request_headers({"content-length": length})) == []


def test_a_body_that_turns_out_too_large_is_refused(exchange: Exchange) -> None:
    exchange.receive(gateway.request_headers())
    assert exchange.receive(gateway.request_body(bytes(LIMIT), end_of_stream=False)) == []
    [event] = exchange.receive(gateway.request_body(b"x"))
    assert isinstance(event, Reply)
    assert isinstance(event.refused, TooLargeError)
    assert str(LIMIT) in str(event.refused)


@pytest.mark.parametrize("announced", [{"content-length": "10"}, {}])
def test_a_body_that_finds_no_room_is_refused_at_once(announced: dict[str, str]) -> None:
    budget = BodyBudget(LIMIT, LIMIT, float)
    other = budget.share()
    other.take(LIMIT)
    other.pinned = True
    exchange = new_exchange(budget)
    events = exchange.receive(gateway.request_headers(announced))
    [event] = events or exchange.receive(gateway.request_body(b"0123456789", end_of_stream=False))
    assert isinstance(event, Reply)
    assert isinstance(event.refused, BudgetSpentError)
    assert answer(event.messages[0]).immediate_response.status.code == 503
    assert headers_of(event.messages[0])["retry-after"] == "1"
    assert exchange.finished


HEADERS, BODY, PART = (
    gateway.request_headers(),
    gateway.request_body(b"x"),
    gateway.request_body(b"x", end_of_stream=False),
)
TRAILERS, ANSWER = gateway.request_trailers(), gateway.response_headers()


@pytest.mark.parametrize(
    "messages",
    [
        [BODY],
        [TRAILERS],
        [ANSWER],
        [gateway.response_body(b"x")],
        [gateway.response_trailers()],
        [HEADERS, HEADERS],
        [HEADERS, BODY, BODY],
        [HEADERS, BODY, TRAILERS],
        [HEADERS, TRAILERS, TRAILERS],
        [REQUEST, BODY],
        [REQUEST, TRAILERS],
        [REQUEST, gateway.response_body(b"x")],
        [REQUEST, gateway.response_trailers()],
        [REQUEST, ANSWER, ANSWER],
        [b"\xff"],
        [b""],
        [HEADERS, b"\x0a\xff"],
    ],
)
def test_messages_out_of_order_break_the_protocol(exchange: Exchange, messages: list[bytes]) -> None:
    *before, last = messages
    for each in before:
        exchange.receive(each)
    with pytest.raises(ProtocolError):
        exchange.receive(last)


@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [
                    HEADERS, REQUEST, BODY, PART, TRAILERS, ANSWER, gateway.response_trailers(),
                    gateway.response_body(b"x", end_of_stream=False), gateway.response_body(b"x"),
                    gateway.request_headers(mode=BUFFERED), gateway.request_headers(mode=NONE),
                    gateway.request_body(bytes(LIMIT + 1)),
                ]
            ),
            st.binary(max_size=20),
        ),
        max_size=8,
    ),
    st.booleans(),
)  # fmt: skip
def test_whatever_comes_there_is_one_question_and_no_other_error(messages: list[bytes], later: bool) -> None:
    """`read`: the endpoint is known only when everything has come."""
    exchange = new_exchange(BodyBudget(2 * LIMIT, LIMIT, float))
    questions = 0
    told: list[bytes] = []
    try:
        for message in messages:
            for event in exchange.receive(message):
                if isinstance(event, RequestReceived):
                    questions += 1
                    told += [] if later else exchange.answer(TO_POD)
                elif isinstance(event, Reply):
                    told += event.messages
        if questions and later:
            told += exchange.answer(TO_POD)
    except ProtocolError:
        pass
    assert questions <= 1
    seen = kinds(told)
    assert seen.count("request_headers") <= 1
    assert seen.count("immediate_response") <= 1
    order = [each for each in seen if each.endswith("headers")]
    assert order == sorted(order), "no answer to request headers after one to response headers"
