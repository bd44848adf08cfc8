"""What the operator answers over HTTP: metrics, and whether it is alive."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from kvtier_operator.reconcile.controller import Controller
from kvtier_operator.reconcile.metrics import REGISTRY

_Handler = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def endpoints(controller: Controller, *, metrics_port: int, health_port: int) -> AsyncIterator[None]:
    """Serves /metrics and /healthz, each on its own port of every address, while the context lasts.

    Raises:
        OSError: A port is taken.
    """

    async def metrics(_: web.Request) -> web.Response:
        controller.count_resources()
        return web.Response(body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def health(_: web.Request) -> web.Response:
        troubles = controller.troubles()
        return web.Response(
            text="stuck: " + ", ".join(troubles) if troubles else "ok", status=503 if troubles else 200
        )

    async with _serving(metrics_port, "/metrics", metrics), _serving(health_port, "/healthz", health):
        yield


@asynccontextmanager
async def _serving(port: int, path: str, handler: _Handler) -> AsyncIterator[None]:
    app = web.Application()
    app.add_routes([web.get(path, handler)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
        yield
    finally:
        await runner.cleanup()
