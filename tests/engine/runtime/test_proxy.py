"""The reverse proxy, between a real client and real servers."""

import asyncio

import aiohttp
from aiohttp import web

from kvtier_operator.runtime.process.ports import free_ports
from kvtier_operator.runtime.proxy import serve_proxy

HOST = "127.0.0.1"


class Upstream:
    """A server that streams two events, the second only once the first has been read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.go_on = asyncio.Event()
        self.seen: list[tuple[str, str, bytes]] = []

    async def start(self, port: int) -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, HOST, port).start()
        return runner

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.method, request.path_qs, await request.read()))
        response = web.StreamResponse(status=201, headers={"X-Engine": self.name})
        await response.prepare(request)
        await response.write(b"data: 1\n\n")
        await self.go_on.wait()
        await response.write(b"data: 2\n\n")
        return response


async def test_takes_turns_and_streams_each_event_as_it_comes() -> None:
    ports = free_ports(3, HOST)
    upstreams = [Upstream("a"), Upstream("b")]
    runners = [await upstream.start(port) for upstream, port in zip(upstreams, ports, strict=False)]
    runners.append(await serve_proxy([f"http://{HOST}:{port}" for port in ports[:2]], HOST, ports[2]))
    names = []
    async with aiohttp.ClientSession() as session:
        for turn in range(4):
            async with session.post(f"http://{HOST}:{ports[2]}/v1/x?y=1", data=b"body") as answer:
                assert answer.status == 201
                names.append(answer.headers["X-Engine"])
                assert await answer.content.readuntil(b"\n\n") == b"data: 1\n\n"
                upstreams[turn % 2].go_on.set()
                assert await answer.content.read() == b"data: 2\n\n"
    for runner in reversed(runners):
        await runner.cleanup()
    assert names == ["a", "b", "a", "b"]
    assert upstreams[0].seen == [("POST", "/v1/x?y=1", b"body")] * 2


async def test_an_engine_that_is_gone_is_a_bad_gateway() -> None:
    gone, port = free_ports(2, HOST)
    runner = await serve_proxy([f"http://{HOST}:{gone}"], HOST, port)
    async with aiohttp.ClientSession() as session, session.get(f"http://{HOST}:{port}/health") as answer:
        assert answer.status == 502
        assert "does not answer" in await answer.text()
    await runner.cleanup()
