"""`python -m kvtier_scorer.picker model-router`: says to a gateway whose model a request asks for."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

import click

from kvtier_common.terminal.say import complain
from kvtier_scorer.config.contract import DEFAULT_MAX_BODY_BYTES, uploads_bytes
from kvtier_scorer.picker.observability.logs import LogFormat, set_up_logs

_LOG: Final = logging.getLogger(__name__)
_LOG_INTERVAL_S: Final = 10.0
_TOTAL_BYTES: Final = uploads_bytes(DEFAULT_MAX_BODY_BYTES)
_PORT: Final = click.IntRange(1, 65535)
_BYTES: Final = click.IntRange(1024, 1 << 36)


@dataclass(frozen=True, slots=True)
class _Start:
    routes: dict[str, str]
    grpc_port: int
    grpc_health_port: int
    max_body_bytes: int
    total_body_bytes: int
    grace_s: float


@click.command("model-router")
@click.option(
    "--route", "routes", metavar="RESOURCE=MODEL", multiple=True, required=True,
    help="Another KVCacheTier, and a model of its that requests name.",
)  # fmt: skip
@click.option("--grpc-port", type=_PORT, default=9002, show_default=True, help="ext_proc, on loopback.")
@click.option("--grpc-health-port", type=_PORT, default=9003, show_default=True, help="grpc.health.v1.")
@click.option("--max-body-bytes", type=_BYTES, default=DEFAULT_MAX_BODY_BYTES, show_default=True)
@click.option("--total-body-bytes", type=_BYTES, default=_TOTAL_BYTES, show_default=True)
@click.option("--grace-period", "grace_s", type=click.FloatRange(min=0), default=30.0, show_default=True)
def model_router(routes: Sequence[str], **settings: Any) -> None:  # noqa: ANN401 - the fields of _Start
    """Tell a gateway, over ext_proc, which resource a request is for by the model that its body names."""
    # what gRPC's C core says is not in our format, and clients can make it say much
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    set_up_logs(LogFormat.JSON, "info")
    by_model = {}
    for route in routes:
        resource, separator, model = route.partition("=")
        if not (resource and separator and model):
            complain(f"model-router: --route: {route!r} is not of the form RESOURCE=MODEL")
            sys.exit(1)
        by_model[model] = resource
    try:
        asyncio.run(_serve(_Start(by_model, **settings)))
    except OSError as error:
        complain(f"model-router: cannot listen: {error}")
        sys.exit(1)


async def _serve(start: _Start) -> None:
    from kvtier_scorer.picker.gateway.bodies import json_size  # noqa: PLC0415 - as below
    from kvtier_scorer.picker.gateway.body_memory import BodyBudget  # noqa: PLC0415 - gRPC reads the environment
    from kvtier_scorer.picker.gateway.ext_proc.model_router import ModelRouter  # noqa: PLC0415 - as above
    from kvtier_scorer.picker.gateway.ext_proc.service import SWITCH_S  # noqa: PLC0415 - as above
    from kvtier_scorer.picker.gateway.transport.health import Health  # noqa: PLC0415 - as above
    from kvtier_scorer.picker.gateway.transport.limits import (  # noqa: PLC0415 - as above
        AROUND_BYTES,
        CALLS,
        CONNECTIONS,
        HEALTH_CONNECTIONS,
        HEALTH_MESSAGE_BYTES,
        Limits,
    )
    from kvtier_scorer.picker.gateway.transport.server import GrpcServer  # noqa: PLC0415 - as above
    from kvtier_scorer.picker.observability.logs import LogRateLimiter  # noqa: PLC0415 - as above

    stop, health = asyncio.Event(), Health()
    json_size.load_kernels()
    sys.setswitchinterval(SWITCH_S)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    budget, uploads = (BodyBudget(start.total_body_bytes, start.max_body_bytes, monotonic) for _ in range(2))
    service = ModelRouter(
        routes=start.routes,
        thread=ThreadPoolExecutor(1, "bodies"),
        budget=budget,
        uploads=uploads,
        rate_limited_log=LogRateLimiter(_LOG, _LOG_INTERVAL_S, monotonic),
        suspects_resets=False,
    )
    asked = GrpcServer(
        service.methods(),
        Limits(start.max_body_bytes + AROUND_BYTES, CONNECTIONS, CALLS),
        "127.0.0.1",
        start.grpc_port,
    )
    probed = GrpcServer(
        health.methods(), Limits(HEALTH_MESSAGE_BYTES, HEALTH_CONNECTIONS, CALLS), "", start.grpc_health_port
    )
    await probed.start()
    await asked.start()
    deadlines = asyncio.create_task(service.enforce_deadlines(), name="deadlines")
    health.set_ready(ready=True)
    _LOG.info("listening: ext_proc %d on loopback, health %d", start.grpc_port, start.grpc_health_port)
    await stop.wait()
    deadlines.cancel()
    health.set_ready(ready=False)
    health.end()
    service.drain()
    await asked.drain(start.grace_s)
    await probed.drain(0.0)
