"""What a picker and a model router have alike: a port for probes, when to stop, how calls are drained."""

import asyncio
import signal
from collections.abc import Sequence

from kvtier_scorer.picker.gateway.ext_proc.calls import ExtProcCalls
from kvtier_scorer.picker.gateway.transport.health import Health
from kvtier_scorer.picker.gateway.transport.server import (
    CALLS,
    HEALTH_CONNECTIONS,
    HEALTH_MESSAGE_BYTES,
    GrpcServer,
    Limits,
)


def stop_event() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def health_server(health: Health, host: str, port: int) -> GrpcServer:
    """The port of probes, always in the clear."""
    return GrpcServer(health.methods(), Limits(HEALTH_MESSAGE_BYTES, HEALTH_CONNECTIONS, CALLS), host, port)


async def drain(
    service: ExtProcCalls,
    health: Health,
    server: GrpcServer,
    background: Sequence[asyncio.Task[None]],
    grace_s: float,
) -> None:
    """Stop: tell probes, end tasks that nobody needs any more, and let the calls of gateways end."""
    for task in background:
        task.cancel()
    await asyncio.gather(*background, return_exceptions=True)
    health.set_ready(ready=False)
    health.end()
    service.drain()
    await server.drain(grace_s)
