"""A site whose connections are few and short, over loopback."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from tests.cluster.harness.programs.ports import free_ports

from kvtier_common.http.site import HEADERS, LimitedSite, limited_runner

GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
FOUND = b"HTTP/1.1 200 OK\r\n"
LONG_S = 600.0


@asynccontextmanager
async def serving(connections: int = 2, lasts_s: float = LONG_S) -> AsyncIterator[int]:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="page")

    app = web.Application()
    app.router.add_get("/", page)
    runner = limited_runner(app)
    await runner.setup()
    [port] = free_ports(1)
    try:
        await LimitedSite(runner, "127.0.0.1", port, connections=connections, lasts_s=lasts_s).start()
        yield port
    finally:
        await runner.cleanup()


@asynccontextmanager
async def asked(port: int, head: bytes = GET) -> AsyncIterator[bytes]:
    """The answer's first line, empty for none; the connection stays open as long as the context."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head + b"\r\n")
        try:
            line = await reader.readline()
        except ConnectionError:
            line = b""
        yield line
    finally:
        writer.close()


async def is_closed(port: int, sent: bytes = b"") -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        return await reader.read() == b""
    except ConnectionError:
        return True
    finally:
        writer.close()


def run(test: Coroutine[None, None, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


def test_one_too_many_is_closed_and_room_is_used_again() -> None:
    async def test() -> None:
        async with serving(connections=2) as port:
            async with asked(port) as first, asked(port) as second:
                assert first == second == FOUND
                async with asked(port) as third:
                    assert third == b""
            again = b""
            while not again:
                async with asked(port) as again:
                    pass
            assert again == FOUND

    run(test())


@pytest.mark.parametrize("sent", [b"", GET, b"GET / HT"], ids=["silent", "no end", "no line"])
def test_who_does_not_finish_a_request_is_let_go(sent: bytes) -> None:
    async def test() -> None:
        async with serving(lasts_s=0.2) as port:
            assert await is_closed(port, sent)

    run(test())


@pytest.mark.parametrize(
    "head",
    [GET + b"X: y\r\n" * (HEADERS + 1), GET + b"X: " + b"y" * 20_000 + b"\r\n"],
    ids=["many", "long"],
)
def test_heads_have_a_size(head: bytes) -> None:
    async def test() -> None:
        async with serving() as port, asked(port, head) as line:
            assert line.split()[1:2] == [b"400"]

    run(test())
