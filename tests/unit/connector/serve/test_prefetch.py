"""A request that only announces its prompt: its blocks are fetched, and nothing is computed."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import pytest
from tests.unit.connector.serve.fake_engine import (
    SOON_S,
    FakeEngine,
    ask,
    served_in_pieces,
    tokens_of,
    until,
)

from kvtier_connector.serve import prefetch
from kvtier_connector.serve.asgi import Message, Receive, Scope, Send, json_answer
from kvtier_connector.serve.middleware import KVTierMiddleware
from kvtier_connector.serve.prefetch import MOST_AT_A_TIME, MOST_BODY_BYTES, MOST_PROMPTS

HINT = {"kv_transfer_params": {"kvtier": {"prefetch": True}}}
CHAT = [{"role": "user", "content": "what is new"}]


class Control:
    """The engines' control sockets in a folder."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self.folder = folder
        self.heard = list[dict[str, Any]]()
        self.answers = True
        self.hung_up = 0  # clients
        self._ranks = ranks

    async def __aenter__(self) -> Self:
        paths = [str(self.folder / f"engine-{rank}.sock") for rank in range(self._ranks)]
        self._servers = [await asyncio.start_unix_server(self._serve, path) for path in paths]
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            self.heard.append(json.loads(line))
            if self.answers:
                writer.write(b"{}\n")
                await writer.drain()
        self.hung_up += 1
        writer.close()


def run(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), SOON_S))


@pytest.mark.parametrize(
    ("path", "request_"),
    [
        ("/v1/completions", {"prompt": "what is new"}),
        ("/v1/completions", {"prompt": [5, 6, 7]}),
        ("/v1/chat/completions", {"messages": CHAT, "model": "m"}),
    ],
)
def test_every_engine_hears_the_tokens_and_none_computes(
    path: str, request_: dict[str, Any], tmp_path: Path
) -> None:
    async def scene() -> None:
        engine = FakeEngine()
        async with Control(tmp_path, 2) as control:
            middleware = KVTierMiddleware(engine, {"KVTIER_CONTROL": str(tmp_path)})
            answer = await ask(middleware, path, {**request_, **HINT, "cache_salt": "s"})
        message = {"verb": "prefetch", "tokens": tokens_of(request_), "cache_salt": "s"}
        assert control.heard == [message] * 2
        assert engine.asked == []
        said = answer.json()
        assert said["usage"] == {"prompt_tokens": 3, "total_tokens": 3, "completion_tokens": 0}
        [choice] = said["choices"]
        assert choice["finish_reason"] == "stop"
        assert (choice["message"]["content"] if "chat" in path else choice["text"]) == ""
        assert said["model"] == "m"

    run(scene)


def test_without_a_socket_or_behind_one_that_does_not_answer_it_is_answered_the_same(tmp_path: Path) -> None:
    async def scene() -> None:
        (tmp_path / "engine-0.sock").touch()
        for environment in ({}, {"KVTIER_CONTROL": str(tmp_path)}):
            engine = FakeEngine()
            answer = await ask(
                KVTierMiddleware(engine, environment), "/v1/completions", {"prompt": "a b", **HINT}
            )
            assert (answer.status, answer.json()["usage"]["prompt_tokens"], engine.asked) == (200, 2, [])

    run(scene)


def test_several_prompts_have_a_choice_each(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Control(tmp_path, 1) as control:
            middleware = KVTierMiddleware(FakeEngine(), {"KVTIER_CONTROL": str(tmp_path)})
            answer = await ask(middleware, "/v1/completions", {"prompt": ["a", "b c"], **HINT})
        assert [len(message["tokens"]) for message in control.heard] == [1, 2]
        assert [choice["index"] for choice in answer.json()["choices"]] == [0, 1]

    run(scene)


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_a_stream_is_answered_as_one(path: str) -> None:
    async def scene() -> None:
        request = {
            "prompt": "a b",
            "messages": CHAT,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        answer = await ask(KVTierMiddleware(FakeEngine(), {}), path, {**request, **HINT})
        events = [line.removeprefix("data: ") for line in answer.body.decode().split("\n\n")[:-1]]
        assert events.pop() == "[DONE]"
        choices, usage = map(json.loads, events)
        assert choices["choices"][0]["finish_reason"] == "stop"
        assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 0)
        assert answer.headers["content-type"].startswith("text/event-stream")

    run(scene)


def test_who_may_not_ask_the_engine_fetches_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Control(tmp_path, 1) as control:
            middleware = KVTierMiddleware(FakeEngine("secret"), {"KVTIER_CONTROL": str(tmp_path)})
            refused = await ask(
                middleware, "/v1/completions", {"prompt": "a", **HINT}, {"authorization": "Bearer no"}
            )
            assert (refused.status, refused.json(), control.heard) == (401, {"error": "Unauthorized"}, [])
            key = {"authorization": "Bearer secret"}
            assert (await ask(middleware, "/v1/completions", {"prompt": "a", **HINT}, key)).is_ok
            assert len(control.heard) == 1

    run(scene)


@pytest.fixture
def parsed_in(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """Threads in which bodies were parsed."""
    threads = list[threading.Thread]()
    read = prefetch._read

    def noted(body: bytes, path: str) -> object:
        threads.append(threading.current_thread())
        return read(body, path)

    monkeypatch.setattr(prefetch, "_read", noted)
    return threads


def test_only_who_may_ask_the_engine_has_a_body_parsed_and_beside_the_loop(
    parsed_in: list[threading.Thread],
) -> None:
    async def scene() -> None:
        middleware = KVTierMiddleware(FakeEngine("secret"), {})
        request = {"prompt": "a", **HINT}
        await ask(middleware, "/v1/completions", request)
        assert parsed_in == []
        await ask(middleware, "/v1/completions", request, {"authorization": "Bearer secret"})
        [thread] = parsed_in
        assert thread is not threading.current_thread()

    run(scene)


@pytest.mark.parametrize(
    "request_",
    [
        {"prefetch": [[]] * 100, "kvtier": 1},
        {**HINT, "kv_transfer_params": {"do_remote_decode": True}, "prompt": "prefetch"},
        {"kv_transfer_params": {"blocks": [0] * 5000, "kvtier": {"prefetch": True}}},
    ],
)
def test_words_that_do_not_stand_together_are_no_reason_to_parse(
    request_: dict[str, Any], parsed_in: list[threading.Thread]
) -> None:
    async def scene() -> None:
        engine = FakeEngine()
        await ask(KVTierMiddleware(engine, {}), "/v1/completions", {"prompt": "a", **request_})
        assert (len(engine.asked), parsed_in) == (1, [])

    run(scene)


@pytest.mark.parametrize("depth", [900, 970, 100_000])
def test_a_body_too_deep_is_the_engines_to_refuse(depth: int) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/v1/models":
            await FakeEngine()(scope, receive, send)
        else:
            await json_answer(400, {"error": "too deep"}).send(send)

    async def scene() -> None:
        hint = json.dumps(HINT).removeprefix("{")
        body = f'{{"messages": {"[" * depth}{"]" * depth}, {hint}'.encode()
        message: Message = {"type": "http.request", "body": body, "more_body": False}
        said, _ = await served_in_pieces(KVTierMiddleware(app, {}), [message], path="/v1/chat/completions")
        assert json.loads(said) == {"error": "too deep"}

    run(scene)


def test_few_are_fetched_at_a_time_and_those_beyond_are_answered_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Control(tmp_path, 1) as control:
            control.answers = False
            middleware = KVTierMiddleware(FakeEngine(), {"KVTIER_CONTROL": str(tmp_path)})
            request = {"prompt": "a b", **HINT}
            waiting = [
                asyncio.ensure_future(ask(middleware, "/v1/completions", request))
                for _ in range(MOST_AT_A_TIME)
            ]
            await until(lambda: len(control.heard) == MOST_AT_A_TIME)
            beyond = await ask(middleware, "/v1/completions", request)
            assert (beyond.status, beyond.json()["usage"]["prompt_tokens"]) == (200, 0)
            for one in waiting:
                one.cancel()
            await until(lambda: control.hung_up == MOST_AT_A_TIME)
            assert len(control.heard) == MOST_AT_A_TIME
            control.answers = True
            after = await ask(middleware, "/v1/completions", request)
            assert (len(control.heard), after.json()["usage"]["prompt_tokens"]) == (MOST_AT_A_TIME + 1, 2)

    run(scene)


def test_a_request_has_one_deadline_after_which_engines_are_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "_REQUEST_S", 0.05)

    async def scene() -> None:
        async with Control(tmp_path, 3) as control:
            control.answers = False
            middleware = KVTierMiddleware(FakeEngine(), {"KVTIER_CONTROL": str(tmp_path)})
            answer = await ask(middleware, "/v1/completions", {"prompt": [[1], [2]], **HINT})
            assert (answer.status, len(answer.json()["choices"])) == (200, 2)
            await until(lambda: control.hung_up == len(control.heard))

    run(scene)


def test_engines_hear_no_more_of_a_prompt_than_a_request_may_have(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Control(tmp_path, 1) as control:
            engine = FakeEngine()
            engine.max_model_len = 5
            middleware = KVTierMiddleware(engine, {"KVTIER_CONTROL": str(tmp_path)})
            await ask(middleware, "/v1/completions", {"prompt": [list(range(9)), [1]], **HINT})
        assert [message["tokens"] for message in control.heard] == [[0, 1, 2, 3, 4], [1]]

    run(scene)


def test_an_adapters_prompt_is_not_taken_for_the_models(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Control(tmp_path, 1) as control:
            middleware = KVTierMiddleware(FakeEngine(), {"KVTIER_CONTROL": str(tmp_path)})
            answer = await ask(middleware, "/v1/completions", {"prompt": "a", "model": "adapter", **HINT})
            assert (answer.json()["model"], control.heard) == ("adapter", [])
            unknown = await ask(middleware, "/v1/completions", {"prompt": "a", "model": "none", **HINT})
            assert (unknown.status, control.heard) == (404, [])

    run(scene)


@pytest.mark.parametrize(
    "request_",
    [
        {"prompt": 'say "prefetch"'},
        {"prompt": "a", "kv_transfer_params": {"kvtier": {"prefetch": False}}},
        {"prompt": "a", "kv_transfer_params": {"kvtier": {"prefetch": "yes"}}},
        {"prompt": "a", "kv_transfer_params": {"prefetch": True}},
        {"prompt": "a", "kv_transfer_params": ["prefetch"]},
        {"prompt": {"no": "prompt"}, **HINT, "messages": CHAT},
        {"prompt": "long " * (MOST_BODY_BYTES // 5), **HINT},
        {"prompt": [[1]] * (MOST_PROMPTS + 1), **HINT},
        {"prompt": "a", "cache_salt": ["b"], **HINT},
    ],
)
def test_everything_else_is_computed(request_: dict[str, Any]) -> None:
    async def scene() -> None:
        engine = FakeEngine()
        engine.fails = lambda request: not isinstance(request["prompt"], str)
        await ask(KVTierMiddleware(engine, {}), "/v1/completions", request_)
        assert [request for _, request, _ in engine.asked] == [request_]

    run(scene)
