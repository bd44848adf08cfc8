"""A stand-in pod whose answers a test decides."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from kvtier_scorer.index.prefix_index import load_kernels

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

LOAD = (
    'vllm:num_requests_running{{engine="0",model_name="m"}} {0}\nvllm:num_requests_waiting{{engine="0"}} 0\n'
)


class Pod:
    """Answers every request as its `answer` says."""

    def __init__(self) -> None:
        self.address = ""
        self.connections: set[object] = set()
        self.requests: list[web.Request] = []
        self.answer: Answer = self.metrics
        self.running = 1
        self.more = ""

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(text=LOAD.format(self.running) + self.more)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.connections.add(request.transport)
        return await self.answer(request)


@pytest.fixture(scope="session", autouse=True)
def kernels() -> None:
    """Compiled before any test waits, as they are before the picker serves: loops stand still meanwhile."""
    load_kernels()


@pytest.fixture
async def pod() -> AsyncIterator[Pod]:
    pod = Pod()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", pod.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    pod.address = f"{host}:{port}"
    yield pod
    await runner.cleanup()
