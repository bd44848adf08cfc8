"""Runs the operator's watches, its controller and its HTTP endpoints in one event loop."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from kvtier_common.http.site import LimitedSite, limited_runner
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.connect import connection
from kvtier_operator.reconcile.api_server import Access
from kvtier_operator.reconcile.handlers import ResourceWatch
from kvtier_operator.reconcile.loop.controller import Controller
from kvtier_operator.reconcile.observability import REGISTRY
from kvtier_operator.reconcile.settings import Options, Timings

_Handler = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def endpoints(
    controller: Controller, access: Access, *, metrics_port: int, health_port: int
) -> AsyncIterator[None]:
    """Serves /metrics, and on another port /healthz and /readyz, on every address while the context lasts."""

    async def metrics(_: web.Request) -> web.Response:
        controller.count_resources()
        return web.Response(body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def health(_: web.Request) -> web.Response:
        troubles = controller.troubles()
        return web.Response(
            text="stuck: " + ", ".join(troubles) if troubles else "ok", status=503 if troubles else 200
        )

    async def readiness(_: web.Request) -> web.Response:
        text = "\n".join([*controller.troubles(), *access.refusals(), *controller.unready()])
        return web.Response(text=text or "ok", status=503 if text else 200)

    probes = {"/healthz": health, "/readyz": readiness}
    async with _serving(metrics_port, {"/metrics": metrics}), _serving(health_port, probes):
        yield


@asynccontextmanager
async def _serving(port: int, handlers: Mapping[str, _Handler]) -> AsyncIterator[None]:
    app = web.Application(client_max_size=1)
    app.add_routes([web.get(path, handler) for path, handler in handlers.items()])
    runner = limited_runner(app)
    await runner.setup()
    try:
        await LimitedSite(runner, "", port).start()
        yield
    finally:
        await runner.cleanup()


async def serve(options: Options, metrics_port: int, health_port: int) -> None:
    """Serve KVCacheTiers until SIGTERM or SIGINT, which cancel it."""
    me = asyncio.current_task()
    for stop in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(stop, me.cancel if me else lambda: None)
    configuration = await connection()
    timings = Timings()
    async with Api(configuration, "kvtier-operator") as api:
        access = Access(api, options.namespaces, timings.access)
        controller = Controller(api, options, access.until_readable, timings)
        watch = ResourceWatch(configuration, options.namespaces, controller.resource_event)
        ports = {"metrics_port": metrics_port, "health_port": health_port}
        async with endpoints(controller, access, **ports), asyncio.TaskGroup() as group:
            group.create_task(access.run(), name="access")
            await access.until_readable_somewhere()  # Kopf looks for the CRD once
            group.create_task(controller.run(), name="controller")
            group.create_task(watch.run(), name="kopf")
