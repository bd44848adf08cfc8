"""Runs the operator's watches, its controller and its HTTP endpoints in one event loop."""

import asyncio
import signal

from kvtier_common.kubernetes.client import Api
from kvtier_common.kubernetes.connect import connection
from kvtier_operator.reconcile.api_server.access import Access
from kvtier_operator.reconcile.endpoints import endpoints
from kvtier_operator.reconcile.handlers import ResourceWatch
from kvtier_operator.reconcile.loop.controller import Controller
from kvtier_operator.reconcile.settings.options import Options
from kvtier_operator.reconcile.settings.timings import Timings


async def serve(options: Options, metrics_port: int, health_port: int) -> None:
    """Serve KVCacheTiers until SIGTERM or SIGINT, which cancel it.

    Args:
        options: What to serve.
        metrics_port: Of Prometheus metrics.
        health_port: Of liveness and readiness.

    Raises:
        KvtierError: No cluster, or one that cannot be asked.
        OSError: A port is in use.
    """
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
