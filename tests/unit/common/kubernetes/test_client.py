"""What the client makes of trouble on its own side."""

import asyncio
import errno
import os

import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException

from kvtier_common.errors import KvtierError, UnreachableError
from kvtier_common.kubernetes.client import Api, Request

IN_FLIGHT = 16


@pytest.mark.parametrize(
    "trouble",
    [OSError(errno.EMFILE, os.strerror(errno.EMFILE)), ConfigException("Token file exists but empty.")],
)
def test_a_token_that_cannot_be_read_for_a_moment_is_worth_another_try(trouble: Exception) -> None:
    async def refresh(_: Configuration) -> None:
        raise trouble

    async def ask() -> None:
        configuration = Configuration(host="http://127.0.0.1:1", api_key={"BearerToken": "old"})
        configuration.refresh_api_key_hook = refresh
        async with Api(configuration, "test") as api:
            with pytest.raises(UnreachableError, match=str(trouble.args[-1])):
                await api.get("/api/v1/pods", {})
            with pytest.raises(UnreachableError, match=str(trouble.args[-1])):
                async for _ in api.watch("/api/v1/pods", {}):
                    pass

    asyncio.run(ask())


def test_a_write_that_may_not_be_is_not_sent_whoever_waited_for_a_connection() -> None:
    """Also not one that began when it still might, and had to wait for its turn."""
    sent: list[str] = []
    answering, busy, allowed = asyncio.Event(), asyncio.Event(), True

    async def answer(request: web.Request) -> web.Response:
        sent.append(request.method)
        if len(sent) == IN_FLIGHT:
            busy.set()
        if request.method == "PATCH":
            await answering.wait()
        return web.json_response({})

    def check() -> None:
        if not allowed:
            raise KvtierError("not now")

    async def run() -> None:
        nonlocal allowed
        app = web.Application()
        app.router.add_route("*", "/x", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        (host, port), *_ = runner.addresses
        async with Api(Configuration(host=f"http://{host}:{port}"), "test", check) as api:
            writes = [asyncio.create_task(api.request(Request("PATCH", "/x", body={}))) for _ in range(40)]
            await busy.wait()
            allowed = False
            answering.set()
            answers = await asyncio.gather(*writes, return_exceptions=True)
            assert sent == ["PATCH"] * IN_FLIGHT
            assert sum(isinstance(answer, KvtierError) for answer in answers) == len(writes) - IN_FLIGHT
            assert await api.get("/x") == b"{}", "reading stays allowed"
        await runner.cleanup()

    asyncio.run(asyncio.wait_for(run(), 30))
