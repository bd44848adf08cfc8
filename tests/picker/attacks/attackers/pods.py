"""An engine that answers as one should until it is told to attack."""

import asyncio
import contextlib
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from aiohttp import web
from tests.picker.attacks.attackers.tally import ANSWERED, ASKED, Tally
from tests.picker.attacks.attackers.target import Target
from tests.picker.harness.engine import Engine

Pod: TypeAlias = contextlib.AbstractAsyncContextManager[None]
_Evil: TypeAlias = Callable[[web.Request, Tally], Awaitable[web.StreamResponse]]
_TEXT: Final = "text/plain; version=0.0.4"
_MIB: Final = 1 << 20
_GOOD_TOKENS: Final = b'{"count":3,"max_model_len":9,"tokens":[1,2,3]}'


@asynccontextmanager
async def _pod(
    target: Target, tally: Tally, evil: asyncio.Event, path: str, answer: _Evil
) -> AsyncIterator[None]:
    """Serves; from `evil` on, `answer` says what comes from `path`."""
    engine = Engine(target.pod)

    async def handle(request: web.Request) -> web.StreamResponse:
        if evil.is_set() and request.path == path:
            tally[ASKED] += 1
            try:
                told = await answer(request, tally)
            except ConnectionError:
                tally["closed"] += 1
                return web.Response()  # to nobody
            except asyncio.CancelledError:
                tally["closed"] += 1
                raise
            tally[ANSWERED] += 1
            return told
        good = _GOOD_TOKENS if request.path == "/tokenize" else engine.exposition()
        return web.Response(body=good, headers={"Content-Type": _TEXT})

    application = web.Application(client_max_size=1 << 30)
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    ip, _, port = target.pod.rpartition(":")
    await web.TCPSite(runner, ip, int(port)).start()
    try:
        yield
    finally:
        with contextlib.suppress(ConnectionError):
            await runner.cleanup()


def good_pod(target: Target) -> Pod:
    """One that attacks by other ways than HTTP."""
    return _pod(target, Tally(), asyncio.Event(), "", _nothing)


async def _nothing(_: web.Request, __: Tally) -> web.StreamResponse:
    raise AssertionError


def metrics_label(target: Target, tally: Tally, evil: asyncio.Event) -> Pod:
    """One label of 40 KB in a sample that is read."""
    sample = f"vllm:num_requests_running{{{'a' * 40_000}}} 1.0\n".encode()

    async def answer(_: web.Request, __: Tally) -> web.StreamResponse:
        engine = Engine(target.pod)
        return web.Response(body=sample + engine.exposition(), headers={"Content-Type": _TEXT})

    return _pod(target, tally, evil, "/metrics", answer)


def metrics_without_end(target: Target, tally: Tally, evil: asyncio.Event) -> Pod:
    """Comments, as fast as they are read."""

    async def answer(request: web.Request, _: Tally) -> web.StreamResponse:
        return await _endless(request, b"# nothing to see here\n" * 50_000)

    return _pod(target, tally, evil, "/metrics", answer)


def metrics_samples(target: Target, tally: Tally, evil: asyncio.Event) -> Pod:
    """100,000 samples of one name, with values such as 1e300."""
    samples = b"".join(
        b'vllm:num_requests_running{model_name="%d",engine="0"} 1e300\n' % number for number in range(100_000)
    )

    async def answer(_: web.Request, __: Tally) -> web.StreamResponse:
        return web.Response(body=samples, headers={"Content-Type": _TEXT})

    return _pod(target, tally, evil, "/metrics", answer)


def metrics_gzip(target: Target, tally: Tally, evil: asyncio.Event) -> Pod:
    """Half a megabyte of gzip that nobody asked for, of 512 MiB."""
    packed = gzip.compress(bytes(512 * _MIB), 9)

    async def answer(_: web.Request, __: Tally) -> web.StreamResponse:
        return web.Response(body=packed, headers={"Content-Type": _TEXT, "Content-Encoding": "gzip"})

    return _pod(target, tally, evil, "/metrics", answer)


def tokenize_hanging(target: Target, tally: Tally, evil: asyncio.Event) -> Pod:
    """No answer to /tokenize."""

    async def answer(_: web.Request, __: Tally) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    return _pod(target, tally, evil, "/tokenize", answer)


def tokenize_huge(target: Target, tally: Tally, evil: asyncio.Event) -> Pod:
    """Tokens without end from /tokenize."""

    async def answer(request: web.Request, _: Tally) -> web.StreamResponse:
        return await _endless(request, b"1," * (_MIB // 2), b'{"tokens":[')

    return _pod(target, tally, evil, "/tokenize", answer)


async def _endless(request: web.Request, part: bytes, first: bytes = b"") -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": _TEXT})
    await response.prepare(request)
    await response.write(first)
    while True:
        await response.write(part)
