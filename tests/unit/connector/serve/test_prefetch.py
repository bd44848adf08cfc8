"""A request that only announces its prompt: its blocks are fetched, and nothing is computed."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import pytest
from tests.unit.connector.serve.fake_engine import SOON_S, FakeEngine, ask, tokens_of

from kvtier_connector.serve.middleware import KVTierMiddleware
from kvtier_connector.serve.prefetch import MOST_BODY_BYTES

HINT = {"kv_transfer_params": {"kvtier": {"prefetch": True}}}
CHAT = [{"role": "user", "content": "what is new"}]


class Control:
    """The engines' control sockets in a folder."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self.folder = folder
        self.heard = list[dict[str, Any]]()
        self._ranks = ranks

    async def __aenter__(self) -> Self:
        paths = [str(self.folder / f"engine-{rank}.sock") for rank in range(self._ranks)]
        self._servers = [await asyncio.start_unix_server(self._serve, path) for path in paths]
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(json.loads(await reader.readline()))
        writer.write(b"{}\n")
        await writer.drain()
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
    ],
)
def test_everything_else_is_computed(request_: dict[str, Any]) -> None:
    async def scene() -> None:
        engine = FakeEngine()
        engine.fails = lambda request: not isinstance(request["prompt"], str)
        await ask(KVTierMiddleware(engine, {}), "/v1/completions", request_)
        assert [request for _, request, _ in engine.asked] == [request_]

    run(scene)
