"""Tokens from an engine's /tokenize, and estimates where it answers something else."""

import asyncio
import gzip
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from tests.picker.data_layer.conftest import Answer, Pod

from kvtier_scorer.picker.engines.tokenizers import EngineTokenizer
from kvtier_scorer.picker.gateway.bodies import read_prompt

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
COMPLETION: dict[str, Any] = {"model": "m", "prompt": "hi"}
PATHS = {"messages": "/v1/chat/completions", "prompt": "/v1/completions", "input": "/v1/responses"}


def says(body: bytes, status: int = 200) -> Answer:
    async def say(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status)

    return say


async def hang(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def reset(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@pytest.fixture
async def asked(pod: Pod) -> list[dict[str, Any]]:
    """The questions that the pod got."""
    asked: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.path == "/tokenize"
        asked.append(await request.json())
        return web.json_response({"count": 2, "max_model_len": 9, "tokens": [5, 4_294_967_295]})

    pod.answer = answer
    return asked


@pytest.fixture
async def engine(pod: Pod) -> AsyncIterator[EngineTokenizer]:
    engine = EngineTokenizer(lambda: pod.address, 0.5)
    yield engine
    await engine.close()


async def tokens(engine: EngineTokenizer, body: dict[str, Any], path: str = "") -> list[int] | None:
    path = path or next(PATHS[name] for name in PATHS if name in body)
    question = engine.tokenize_request(read_prompt(path, json.dumps(body).encode()), body)
    found = None if question is None else await engine.tokenize(question)
    return None if found is None else found.tolist()


async def test_no_redirect_is_followed(engine: EngineTokenizer, pod: Pod) -> None:
    async def send_on(_: web.Request) -> web.StreamResponse:
        raise web.HTTPTemporaryRedirect(f"http://{pod.address}/elsewhere")

    pod.answer = send_on
    assert await tokens(engine, CHAT) is None
    assert [request.path for request in pod.requests] == ["/tokenize"]


@pytest.mark.parametrize("body", [CHAT, COMPLETION])
async def test_the_engine_is_asked_what_decides_the_tokens(
    engine: EngineTokenizer, asked: list[dict[str, Any]], body: dict[str, Any]
) -> None:
    more = {"add_special_tokens": False, "stream": True, "temperature": 1}
    assert await tokens(engine, body | more) == [5, 4_294_967_295]
    assert asked == [body | {"add_special_tokens": False}]


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/v1/completions", COMPLETION | {"messages": CHAT["messages"]}, [COMPLETION]),
        ("/v1/chat/completions", CHAT | {"prompt": "hi"}, [CHAT]),
        ("/v1/completions", {"model": "m", "prompt": ["hi", "ho"]}, []),
        ("/v1/responses", {"model": "m", "input": "hi"}, []),
        ("/v1/embeddings", {"model": "m", "input": "hi", "prompt": "ho"}, []),
    ],
)
async def test_only_what_the_prompt_was_read_from_is_asked_for(
    engine: EngineTokenizer,
    asked: list[dict[str, Any]],
    path: str,
    body: dict[str, Any],
    expected: list[dict[str, Any]],
) -> None:
    await tokens(engine, body, path)
    assert asked == expected


def packed(body: bytes) -> Answer:
    async def say(_: web.Request) -> web.StreamResponse:
        return web.Response(body=gzip.compress(body), headers={"Content-Encoding": "gzip"})

    return say


async def without_end(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b'{"tokens": [' + b"1," * 32_768)


@pytest.mark.parametrize(
    "fault",
    [
        hang,
        without_end,
        packed(b'{"tokens": [1]}'),
        says(b'{"tokens": [%b1]}' % (b"1," * 40_000)),
        says(b'{"more": %b, "tokens": [1]}' % (b"[" * 2000 + b"]" * 2000)),
        says(b"x", 500),
        reset,
        says(b"<html>"),
        says(b"[]"),
        says(b"{}"),
        says(b'{"tokens": [-1]}'),
        says(b'{"tokens": [4294967296]}'),
        says(b'{"tokens": ["\xff"]}'),
    ],
    ids=[
        "hang",
        "endless",
        "gzip",
        "tokens",
        "nested",
        "500",
        "reset",
        "html",
        "list",
        "none",
        "negative",
        "large",
        "no-utf8",
    ],
)
async def test_an_engine_that_says_something_else_is_told_of_once_and_tokens_are_estimated(
    engine: EngineTokenizer, pod: Pod, fault: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    pod.answer = fault
    for _ in range(2):
        assert await tokens(engine, COMPLETION) is None
    assert sum("tokens are estimated" in record.getMessage() for record in caplog.records) == 1
    pod.answer = says(b'{"tokens": [1]}')
    assert await tokens(engine, COMPLETION) == [1]


async def test_a_request_that_the_engine_refuses_is_left_to_it(
    engine: EngineTokenizer, pod: Pod, caplog: pytest.LogCaptureFixture
) -> None:
    pod.answer = says(b'{"error": "too long"}', 400)
    assert await tokens(engine, COMPLETION) is None
    assert not caplog.records


async def test_without_a_pod_tokens_are_estimated() -> None:
    engine = EngineTokenizer(lambda: None, 0.5)
    assert await tokens(engine, COMPLETION) is None
    await engine.close()


async def test_a_field_that_cannot_be_sent_on_does_not_fail_the_request(engine: EngineTokenizer) -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    assert await tokens(engine, CHAT | {"mm_processor_kwargs": deep}) is None


class Turning:
    """A clock that a test turns."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("fault", [hang, without_end, says(b"{}"), says(b"x", 503)])
async def test_a_pod_that_does_not_answer_is_not_asked_for_a_while(
    pod: Pod, fault: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Turning()
    engine = EngineTokenizer(lambda: pod.address, 0.05, clock)
    pod.answer = fault
    for _ in range(50):
        assert await tokens(engine, COMPLETION) is None
    assert len(pod.requests) == 3, "then it is estimated at once"
    assert engine.skipped_pods == 1
    clock.now_s += 1.0
    for _ in range(50):
        assert await tokens(engine, COMPLETION) is None
    assert len(pod.requests) == 4, "one tries"
    clock.now_s += 1.0
    assert await tokens(engine, COMPLETION) is None
    assert len(pod.requests) == 4, "a longer while"
    clock.now_s += 1.0
    pod.answer = says(b'{"tokens": [1]}')
    for _ in range(2):
        assert await tokens(engine, COMPLETION) == [1]
    assert (len(pod.requests), engine.skipped_pods) == (6, 0)
    assert len([record for record in caplog.records if record.name.startswith("kvtier")]) == 1
    await engine.close()


async def test_a_pod_that_answers_is_asked_in_the_place_of_one_that_does_not(pod: Pod) -> None:
    pod.answer = says(b'{"tokens": [1]}')
    nobody = "127.0.0.1:1"
    drawn = itertools.cycle([nobody, pod.address])
    engine = EngineTokenizer(lambda: next(drawn), 5.0)
    found = [await tokens(engine, COMPLETION) for _ in range(20)]
    assert found.count(None) == 3
    assert found[-1] == [1]
    await engine.close()
