"""The engine is healthy when its prefixes are there, and everything else passes as it is."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from tests.unit.connector.serve.fake_engine import (
    SOON_S,
    FakeEngine,
    ask,
    healthy,
    served_in_pieces,
    until,
)

from kvtier_common.metrics import prefixes as names
from kvtier_connector.serve.asgi import Answer, Request, call
from kvtier_connector.serve.keeper import PrefixKeeper
from kvtier_connector.serve.middleware import KVTierMiddleware
from kvtier_connector.serve.prefetch import MOST_BODY_BYTES
from kvtier_connector.serve.prefixes import Prefix, read_prefix, read_prefixes
from kvtier_connector.serve.turns import Turn


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two prefixes."""
    (tmp_path / "system.json").write_text(json.dumps({"text": "you are brief", "retain_s": 10}))
    chat = [{"role": "system", "content": "you have these tools"}]
    (tmp_path / "tools.json").write_text(json.dumps({"messages": chat, "retain_s": 7200}))
    return tmp_path


def around(engine: FakeEngine, folder: Path, **environment: str) -> KVTierMiddleware:
    return KVTierMiddleware(engine, {"KVTIER_PREFIXES": str(folder), **environment})


Sleeps = asyncio.Queue[tuple[float, asyncio.Event]]


def kept(engine: FakeEngine, prefixes: Sequence[Prefix]) -> tuple[PrefixKeeper, Sleeps]:
    """A keeper of prefixes, and its sleeps: how long each is to be, and what ends it."""
    sleeps: Sleeps = asyncio.Queue()

    async def sleep(delay_s: float) -> None:
        await sleeps.put((delay_s, over := asyncio.Event()))
        await over.wait()

    async def app_answer(request: Request) -> Answer:
        return await call(engine, engine, request)

    return PrefixKeeper(prefixes, app_answer, within_s=SOON_S, turn=Turn(None), sleep=sleep), sleeps


def run(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), SOON_S))


async def begun(engine: FakeEngine, requests: int) -> None:
    await until(lambda: len(engine.asked) >= requests)


def test_the_engine_is_healthy_when_its_prefixes_are_there(folder: Path) -> None:
    async def scene() -> None:
        engine = FakeEngine()
        engine.goes_on.clear()
        middleware = around(engine, folder)
        held = await ask(middleware, "/health")
        await begun(engine, 1)
        assert (held.status, held.json()["prefixes"], held.json()["of"]) == (503, 0, 2)
        assert held.body.count(b"\n") == 1
        assert (await ask(middleware, "/v1/models")).is_ok, "only its health is held"
        engine.goes_on.set()
        await healthy(middleware)
        assert [path for path, _, _ in engine.asked] == ["/v1/completions", "/v1/chat/completions"]
        engine.is_healthy = False
        assert (await ask(middleware, "/health")).status == 503, "from now on its own word counts"

    run(scene)


def test_it_begins_with_the_app_and_not_before_that_is_healthy(folder: Path) -> None:
    async def scene() -> None:
        engine = FakeEngine()
        engine.is_healthy = False
        middleware = around(engine, folder)
        ends = asyncio.Event()
        messages = [{"type": "lifespan.startup"}]
        sent = list[str]()

        async def receive() -> dict[str, str]:
            if messages:
                return messages.pop()
            await ends.wait()
            return {"type": "lifespan.shutdown"}

        async def send(message: Mapping[str, str]) -> None:
            sent.append(message["type"])

        scope = {"type": "lifespan", "app": engine}
        life = asyncio.ensure_future(middleware(scope, receive, send))
        await until(lambda: sent and (engine.looks or engine.asked))
        assert engine.asked == []
        engine.is_healthy = True
        await begun(engine, 2)
        ends.set()
        await life
        assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert middleware._task
        with pytest.raises(asyncio.CancelledError):
            await middleware._task

    run(scene)


def test_after_its_time_the_engine_is_healthy_without_them(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        engine = FakeEngine()
        engine.goes_on.clear()
        middleware = around(engine, folder, KVTIER_PREFIXES_WITHIN_S="0.01")
        await healthy(middleware)
        engine.goes_on.set()
        await begun(engine, 2)

    with caplog.at_level(logging.WARNING, "vllm.kvtier"):
        run(scene)
    [line] = [record.getMessage() for record in caplog.records]
    assert "after 0.01 s" in line
    assert "system, tools" in line


def test_a_prefix_that_fails_is_one_line_and_the_others_are_there(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        engine = FakeEngine()
        engine.fails = lambda request: "prompt" in request
        await healthy(around(engine, folder))

    with caplog.at_level(logging.WARNING, "vllm.kvtier"):
        run(scene)
    assert [record.getMessage() for record in caplog.records] == [
        "kvtier: prefix system is not computed: 400: too long"
    ]
    assert REGISTRY.get_sample_value(names.COMPUTED, {"prefix": "system"}) == 0
    assert REGISTRY.get_sample_value(names.COMPUTED, {"prefix": "tools"}) == 1


def test_they_are_asked_for_again_before_they_may_go_and_what_was_cached_is_told(folder: Path) -> None:
    async def scene() -> None:
        engine = FakeEngine()
        keeper, sleeps = kept(engine, read_prefixes(folder)[0])

        def told(name: str) -> list[float | None]:
            return [REGISTRY.get_sample_value(name, {"prefix": prefix}) for prefix in ("system", "tools")]

        life = asyncio.ensure_future(keeper.run())
        delay_s, over = await sleeps.get()
        assert 0 < delay_s <= 5, "half of what it is kept for"
        assert (told(names.TOKENS), told(names.CACHED_TOKENS)) == ([3, 4], [0, 0])
        over.set()
        await sleeps.get()
        assert [request.get("prompt") for _, request, _ in engine.asked[2:]] == ["you are brief"]
        assert told(names.CACHED_TOKENS) == [3, 0]
        life.cancel()

    run(scene)


def test_a_prefix_that_others_displaced_is_there_again_in_a_minute_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene() -> None:
        engine = FakeEngine()
        keeper, sleeps = kept(engine, [read_prefix({"text": "you are brief", "retain_s": 7200}, "fallen")])
        life = asyncio.ensure_future(keeper.run())
        cached = list[float | None]()
        for is_lost in (False, True, True, False, False, True):
            delay_s, over = await sleeps.get()
            assert 0 < delay_s <= 60
            if is_lost:
                engine.lose_all()
            over.set()
            await until(lambda: not sleeps.empty())
            cached.append(REGISTRY.get_sample_value(names.CACHED_TOKENS, {"prefix": "fallen"}))
        assert cached == [3, 0, 0, 3, 3, 0]
        life.cancel()

    with caplog.at_level(logging.WARNING, "vllm.kvtier"):
        run(scene)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(";")[0] for line in lines] == [
        "kvtier: prefix fallen had left the cache and is computed again: 3 tokens, 0 of them cached"
    ] * 2


@pytest.mark.parametrize("tells_cached", [True, False])
def test_a_prefix_of_which_nothing_is_ever_cached_is_no_line(
    *, tells_cached: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        engine = FakeEngine()
        engine.tells_cached = tells_cached
        keeper, sleeps = kept(engine, [read_prefix({"text": "brief"}, "short")])
        life = asyncio.ensure_future(keeper.run())
        for _ in range(3):
            _, over = await sleeps.get()
            engine.lose_all()
            over.set()
        life.cancel()

    with caplog.at_level(logging.WARNING, "vllm.kvtier"):
        run(scene)
    assert caplog.records == []


def test_of_many_prefixes_no_more_than_one_a_second_is_asked_for_again() -> None:
    async def scene() -> None:
        engine = FakeEngine()
        prefixes = [read_prefix({"text": f"number {number}"}, f"p{number}") for number in range(256)]
        keeper, sleeps = kept(engine, prefixes)
        life = asyncio.ensure_future(keeper.run())
        delay_s, _ = await sleeps.get()
        assert 60 < delay_s <= 256
        life.cancel()

    run(scene)


def test_a_server_that_asks_for_a_key_computes_them_too_and_each_of_its_engines(folder: Path) -> None:
    async def scene() -> None:
        engine = FakeEngine("secret", data_parallel_size=2)
        middleware = around(engine, folder)
        await healthy(middleware)
        ranks = [headers["x-data-parallel-rank"] for _, _, headers in engine.asked]
        assert ranks == ["0", "1", "0", "1"]
        assert (await ask(middleware, "/v1/models")).status == 401, "clients need it all the same"

    run(scene)


def test_of_several_servers_one_asks_and_none_is_healthy_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = folder / "lock"
    monkeypatch.setattr("kvtier_connector.serve.middleware.turn_of_server", lambda *_: Turn(lock))

    async def scene() -> None:
        engines = [FakeEngine(), FakeEngine()]
        engines[0].goes_on.clear()
        servers = [around(engine, folder) for engine in engines]
        for server in servers:
            assert not (await ask(server, "/health")).is_ok
        await begun(engines[0], 1)
        for server in servers:
            assert not (await ask(server, "/health")).is_ok
        engines[0].goes_on.set()
        for server in servers:
            await healthy(server)
        assert (len(engines[0].asked), engines[1].asked) == (2, [])

    run(scene)


@pytest.mark.parametrize("environment", [{}, {"KVTIER_PREFIXES": "/nowhere"}])
def test_without_prefixes_nothing_is_held_or_asked(environment: dict[str, str]) -> None:
    async def scene() -> None:
        engine = FakeEngine()
        assert (await ask(KVTierMiddleware(engine, environment), "/health")).is_ok
        assert engine.asked == []

    run(scene)


@given(parts=st.lists(st.binary(max_size=50), min_size=1, max_size=5), hangs_up=st.booleans())
def test_a_request_reaches_the_app_as_it_came(parts: list[bytes], *, hangs_up: bool) -> None:
    async def echo(_scope: object, receive: Callable[[], Awaitable[dict[str, object]]], send: object) -> None:
        found = list[object]()
        while True:
            message = await receive()
            found.append(message.get("body", b"gone"))
            if not message.get("more_body"):
                break
        await send({"body": b"".join(found)})  # type: ignore[operator, arg-type] # as ASGI has it

    async def scene() -> None:
        messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        if hangs_up:
            messages.append({"type": "http.disconnect"})
        else:
            messages[-1]["more_body"] = False
        later = {"type": "http.disconnect", "later": True}
        said, left = await served_in_pieces(KVTierMiddleware(echo, {}), [*messages, later])  # type: ignore[arg-type]
        assert said == b"".join(parts) + b"gone" * hangs_up
        assert left == [later]

    run(scene)


def test_a_long_body_is_not_held_until_it_is_whole() -> None:
    parts = [b"a" * MOST_BODY_BYTES, b"b" * MOST_BODY_BYTES, b"c"]
    length = str(sum(map(len, parts))).encode()

    async def first(_scope: object, receive: Callable[[], Awaitable[dict[str, bytes]]], send: object) -> None:
        await send(await receive())  # type: ignore[operator] # as ASGI has it

    async def scene() -> None:
        for headers, held in (([], 2), ([(b"Content-Length", length)], 1)):
            messages = [{"type": "http.request", "body": part, "more_body": part != b"c"} for part in parts]
            said, left = await served_in_pieces(KVTierMiddleware(first, {}), messages, headers)  # type: ignore[arg-type]
            assert (said, len(left)) == (b"".join(parts[:held]), len(parts) - held)

    run(scene)
