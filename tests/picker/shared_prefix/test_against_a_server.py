"""The benchmark against a server that answers as vLLM does, over real sockets."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner, Result

from kvtier_scorer.bench.command import shared_prefix


class Engine:
    """Answers every question, counts what it was asked, and fails where a test says so."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, object]] = []
        self.queried = 0
        self.refuse_after = 1_000
        self.has_tokenizer = True

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/tokenize", self._tokenize)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/metrics", self._metrics)
        return app

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "a-model"}]})

    async def _tokenize(self, request: web.Request) -> web.Response:
        if not self.has_tokenizer:
            raise web.HTTPNotFound
        words = len((await request.json())["prompt"].split())
        return web.json_response({"count": 2 * words})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        if len(self.bodies) > self.refuse_after:
            return web.json_response({"error": {"message": "every pod\nis busy"}}, status=429)
        self.queried += 100
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in (
            {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
            {"choices": [{"delta": {"content": "a"}}]},
            {"choices": [{"delta": {"content": "b"}}]},
            {"choices": [], "usage": {"prompt_tokens": 98, "completion_tokens": 2}},
        ):
            await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _metrics(self, _: web.Request) -> web.Response:
        half = self.queried // 2
        return web.Response(
            text="# TYPE vllm:prefix_cache_queries counter\n"
            f"vllm:prefix_cache_queries_total {self.queried}\n"
            "# TYPE vllm:prefix_cache_hits counter\n"
            f"vllm:prefix_cache_hits_total {half}\n"
        )


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
async def url(engine: Engine) -> AsyncIterator[str]:
    async with TestServer(engine.app()) as server:
        yield str(server.make_url("/")).rstrip("/")


async def bench(*arguments: str) -> Result:
    import asyncio  # noqa: PLC0415 - the command has an event loop of its own, in a thread of its own

    return await asyncio.to_thread(CliRunner().invoke, shared_prefix, list(arguments))


SIZES = (
    *("--num-groups", "2", "--prompts-per-group", "3", "--system-prompt-len", "40"),
    *("--question-len", "10", "--output-len", "2", "--concurrency", "2"),
)


async def test_every_question_is_asked_once(engine: Engine, url: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    result = await bench(
        *(
            "--url",
            f"{url}/v1",
            "--engine",
            url,
            "--name",
            "tier on",
            "--write",
            str(file),
        ),
        *SIZES,
    )
    assert result.exit_code == 0, result.output
    assert "50.0%" in result.output
    document = json.loads(file.read_text())["shared_prefix"]
    assert (document["requests"], document["failed"]) == (6, 0)
    assert document["hit_rate"] == {"device": 0.5, "tier": 0.0}
    assert len(engine.bodies) == 6
    assert len({json.dumps(body["messages"]) for body in engine.bodies}) == 6
    assert {body["model"] for body in engine.bodies} == {"a-model"}
    messages = engine.bodies[0]["messages"]
    assert isinstance(messages, list)
    # two tokens a word, as this server's tokenizer says
    assert [len(message["content"].split()) for message in messages] == [20, 5]

    beside = await bench("--url", url, "--beside", str(file), "--name", "again", *SIZES)
    assert beside.exit_code == 0, beside.output
    assert "tier on" in beside.output
    assert "again" in beside.output


async def test_without_a_tokenizer_a_token_is_four_bytes(engine: Engine, url: str) -> None:
    engine.has_tokenizer = False
    result = await bench("--url", url, *SIZES)
    assert result.exit_code == 0, result.output
    messages = engine.bodies[0]["messages"]
    assert isinstance(messages, list)
    assert 140 <= len(messages[0]["content"]) <= 180


async def test_a_refused_request_is_said_and_fails_the_run(engine: Engine, url: str) -> None:
    engine.refuse_after = 4
    result = await bench("--url", url, "-o", "json", *SIZES)
    assert result.exit_code == 3
    assert "2 of 6 requests failed; the first: 429 every pod is busy" in result.stderr
    assert json.loads(result.stdout)["shared_prefix"]["requests"] == 4


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--url", "localhost:1"), 3, "--url: got 'localhost:1': write it as http://host:port"),
        (("--url", "http://127.0.0.1:1"), 3, "the server does not answer"),
        (("--url", "http://127.0.0.1:1", "--num-groups", "0"), 2, "--num-groups"),
        (("--url", "http://127.0.0.1:1", "--beside", __file__), 2, "is not a result of"),
    ],
)
async def test_bad_input_is_one_line(arguments: tuple[str, ...], status: int, words: str) -> None:
    result = await bench(*arguments)
    assert result.exit_code == status
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


async def test_an_engine_without_metrics_is_named(url: str) -> None:
    result = await bench("--url", url, "--engine", f"{url}/nothing", *SIZES)
    assert result.exit_code == 3
    assert "/nothing/metrics answered 404" in result.stderr
