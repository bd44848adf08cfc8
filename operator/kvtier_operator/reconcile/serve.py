"""Runs the operator's watches, its controller and its HTTP endpoints in one event loop."""

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final
from uuid import uuid4

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from kvtier_common.http.site import LimitedSite, limited_runner
from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.connect import connection, own_namespace
from kvtier_operator.reconcile.api_server import Access
from kvtier_operator.reconcile.handlers import ResourceWatch
from kvtier_operator.reconcile.lease import Lease, LeaseTimings, LostLeaseError
from kvtier_operator.reconcile.loop.controller import Controller
from kvtier_operator.reconcile.observability import LEADER, REGISTRY
from kvtier_operator.reconcile.settings import Options, Timings

_LOG: Final = logging.getLogger(__name__)
_LAST_WRITES_S: Final = 5.0
"""How long the end waits for writes under way; the next operator begins as soon as they have ended."""
_Handler = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def _candidate(options: Options) -> AsyncIterator[Lease | None]:
    """The Lease, if there is to be one."""
    if options.lease is None:
        LEADER.set(1)
        yield None
        return
    # connections of its own, so that it is renewed however many requests wait for the others
    async with Api(await connection(), "kvtier-operator-lease") as api:
        holder = f"{socket.gethostname()}_{uuid4().hex[:8]}"
        yield Lease(api, own_namespace(), options.lease, holder, LeaseTimings(options.lease_s))


@asynccontextmanager
async def given_up(lease: Lease | None, api: Api) -> AsyncIterator[None]:
    """Gives the Lease up at the end, when the last write has ended; while one is under way, it runs out."""
    try:
        yield
    finally:
        if lease is not None and lease.is_held():
            lease.ends = True
            if await api.writes_ended(_LAST_WRITES_S):
                await lease.release()
            else:
                _LOG.warning("the Lease %s is not given up: writes are still under way", lease)


@asynccontextmanager
async def endpoints(
    controller: Controller, access: Access, lease: Lease | None, *, metrics_port: int, health_port: int
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
        if lease is None or lease.is_held():
            unready, well = controller.unready(), "ok"
        else:
            unready = [f"the Lease {lease}: {lease.trouble}"] if lease.trouble else []
            well = f"ok, standing by: {lease.leader() or 'nobody'} holds the Lease"
        text = "\n".join([*controller.troubles(), *access.refusals(), *unready])
        return web.Response(text=text or well, status=503 if text else 200)

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
    """Serve KVCacheTiers until SIGTERM or SIGINT, which cancel it; a LostLeaseError ends it, too."""
    me = asyncio.current_task()
    for stop in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(stop, me.cancel if me else lambda: None)
    try:
        async with _candidate(options) as lease:
            await _serve(options, lease, metrics_port, health_port)
    except ExceptionGroup as errors:
        if (lost := errors.subgroup(LostLeaseError)) is None:
            raise
        raise LostLeaseError(str(lost.exceptions[0])) from errors


async def _serve(options: Options, lease: Lease | None, metrics_port: int, health_port: int) -> None:
    configuration = await connection()
    timings = Timings()
    async with Api(configuration, "kvtier-operator", lease.check if lease else None) as api:
        access = Access(api, options.namespaces, timings.access)
        controller = Controller(api, options, access.until_readable, timings)
        watch = ResourceWatch(configuration, options.namespaces, controller.resource_event)
        ports = {"metrics_port": metrics_port, "health_port": health_port}
        async with (
            endpoints(controller, access, lease, **ports),
            given_up(lease, api),
            asyncio.TaskGroup() as group,
        ):
            group.create_task(access.run(), name="access")
            await access.until_readable_somewhere()  # Kopf looks for the CRD once
            if lease is not None:
                await lease.acquire()
                group.create_task(lease.keep(), name="lease")
            group.create_task(controller.run(), name="controller")
            group.create_task(watch.run(), name="kopf")
