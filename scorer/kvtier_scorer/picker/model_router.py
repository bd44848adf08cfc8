"""Sends requests for other resources' models on to them: body-based routing, as the field calls it."""

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from typing import Final

import msgspec

from kvtier_scorer.config.contract import RESOURCE
from kvtier_scorer.picker.gateway.bodies import json_size
from kvtier_scorer.picker.gateway.body_memory import BodyBudget
from kvtier_scorer.picker.gateway.ext_proc.calls import ExtProcCalls
from kvtier_scorer.picker.gateway.ports import drain, health_server, stop_event
from kvtier_scorer.picker.gateway.protocol.events import Decision, RequestReceived, ResponseReceived
from kvtier_scorer.picker.gateway.transport.health import Health
from kvtier_scorer.picker.gateway.transport.server import (
    AROUND_BYTES,
    BODIES_WINDOW_BYTES,
    CALLS,
    CONNECTIONS,
    GrpcServer,
    Limits,
)
from kvtier_scorer.picker.observability.logs import LogRateLimiter
from kvtier_scorer.picker.options import RouterOptions

_LOG: Final = logging.getLogger(__name__)
_LOG_INTERVAL_S: Final = 10.0
_STAYS: Final = Decision({})


class _Body(msgspec.Struct):
    """All else is passed over without becoming objects, whatever a client makes of it."""

    model: str | None = None


_BODY: Final = msgspec.json.Decoder(_Body)


def model_of(body: bytes) -> str | None:
    """The model that a JSON body names; None of what is no such body, which is its engine's to refuse.

    Nor is one read that would be too many objects, as by the picker: decoding those holds all others up.
    """
    if not json_size.is_bounded(body):
        return None
    try:
        return _BODY.decode(body).model
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


@dataclass(slots=True, kw_only=True)
class ModelRouter(ExtProcCalls):
    """Names the resource of each request's model, for the gateway to route by; large bodies on a thread."""

    routes: Mapping[str, str]
    thread: Executor

    def decide_now(self, event: RequestReceived, begun_s: float) -> Decision | None:
        """Where a request with a small body goes."""
        del begun_s
        body = event.body or b""
        return self._decision(body) if json_size.is_small(body) else None

    async def decide(self, event: RequestReceived, begun_s: float) -> Decision:
        """Where any request goes: large bodies are read on one thread, one after the other."""
        del begun_s
        return await asyncio.get_running_loop().run_in_executor(
            self.thread, self._decision, event.body or b""
        )

    def on_response(self, decision: Decision | None, served: ResponseReceived) -> None:
        """Nothing is learnt from it."""

    def _decision(self, body: bytes) -> Decision:
        model = model_of(body)
        resource = None if model is None else self.routes.get(model)
        return _STAYS if resource is None else Decision({RESOURCE: resource})


async def serve(options: RouterOptions) -> None:
    """Run until SIGTERM or SIGINT, then let requests under way finish; OSError if a port cannot be had."""
    stop, health = stop_event(), Health()
    json_size.prepare_reading()
    total_bytes, most_bytes = options.total_body_bytes, options.max_body_bytes
    service = ModelRouter(
        routes=options.routes,
        thread=ThreadPoolExecutor(1, "bodies"),
        budget=BodyBudget(total_bytes, most_bytes, monotonic),
        uploads=BodyBudget(total_bytes, most_bytes, monotonic),
        rate_limited_log=LogRateLimiter(_LOG, _LOG_INTERVAL_S, monotonic),
        suspects_resets=False,
    )
    limits = Limits(most_bytes + AROUND_BYTES, CONNECTIONS, CALLS, BODIES_WINDOW_BYTES)
    server = GrpcServer(service.methods(), limits, "127.0.0.1", options.grpc_port)
    probed = health_server(health, "", options.grpc_health_port)
    try:
        await probed.start()
        await server.start()
        deadlines = asyncio.create_task(service.enforce_deadlines(), name="deadlines")
        health.set_ready(ready=True)
        _LOG.info(
            "listening: ext_proc %d on loopback, health %d", options.grpc_port, options.grpc_health_port
        )
        await stop.wait()
        await drain(service, health, server, [deadlines], options.grace_s)
    finally:
        await probed.drain(0.0)
