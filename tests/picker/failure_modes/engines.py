"""Tiny servers in place of vLLM: they say who they are and whether a picker had chosen them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from kvtier_operator.planning.envoy.gateway import Address
from kvtier_operator.runtime.process import LOOPBACK
from kvtier_scorer.config.contract import DESTINATION

_LARGEST_BODY_BYTES = 1 << 27
# What the picker reads of an idle vLLM (v1/metrics/loggers.py).
_METRICS = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="test/tiny"} 0.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="test/tiny"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="test/tiny"} 0.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="1000"} 1.0
"""


@dataclass(frozen=True, slots=True)
class Served:
    """What an engine says of a request.

    Attributes:
        engine: Which engine it was.
        picked: The address that the picker had named; None where nobody had been asked.
        body_bytes: Bytes of the request that arrived.
    """

    engine: str
    picked: str | None
    body_bytes: int


@asynccontextmanager
async def running_engines(count: int) -> AsyncIterator[list[Address]]:
    """So many engines on ports of the kernel's choice."""
    runners, addresses = [], []
    for _ in range(count):
        runner = web.AppRunner(_app(), access_log=None, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, LOOPBACK, 0)
        await site.start()
        runners.append(runner)
        addresses.append(Address(LOOPBACK, runner.addresses[0][1]))
    try:
        yield addresses
    finally:
        for runner in runners:
            await runner.cleanup()


def _app() -> web.Application:
    app = web.Application(client_max_size=_LARGEST_BODY_BYTES)
    app.router.add_get("/metrics", _metrics)
    app.router.add_route("*", "/{path:.*}", _answer)
    return app


async def _metrics(_: web.Request) -> web.Response:
    return web.Response(text=_METRICS)


async def _answer(request: web.Request) -> web.Response:
    assert request.transport is not None
    host, port = request.transport.get_extra_info("sockname")[:2]
    body = await request.read()
    return web.json_response(
        {
            "engine": f"{host}:{port}",
            "picked": request.headers.get(DESTINATION),
            "body_bytes": len(body),
        }
    )
