"""Calls whose gateway does not do what is waited for, and one whose message is larger than the port takes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from tests.picker.fuzz.conftest import PROCESS
from tests.picker.fuzz.inputs import GOOD
from tests.picker.transport.conftest import LIMITS, until
from tests.unit.scorer.picker.gateway.ext_proc.test_service import Picks
from tests.unit.scorer.picker.gateway.protocol.gateway import request_body, request_headers

from kvtier_scorer.picker.gateway.body_memory import BodyBudget
from kvtier_scorer.picker.gateway.ext_proc.service import ExtProcService, RequestReader
from kvtier_scorer.picker.gateway.transport.server import CallTimings, GrpcServer

_SOON_S = 0.05


@pytest.fixture
async def service(request: pytest.FixtureRequest) -> AsyncIterator[ExtProcService]:
    """One that does not wait long for one thing, which the test names."""
    timings = replace(CallTimings(check_interval_s=_SOON_S), **dict.fromkeys(request.param, _SOON_S))
    nobody: Any = SimpleNamespace()
    budget = BodyBudget(LIMITS.message_bytes, LIMITS.message_bytes, lambda: 0.0)
    picks: Any = Picks()
    service = ExtProcService(
        scheduler=picks,
        requests=RequestReader(None),
        clock=lambda: 0.0,
        budget=budget,
        uploads=BodyBudget(LIMITS.message_bytes, LIMITS.message_bytes, lambda: 0.0),
        rate_limited_log=nobody,
        timings=timings,
    )
    watch = asyncio.create_task(service.enforce_deadlines())
    yield service
    watch.cancel()
    with suppress(asyncio.CancelledError):
        await watch
    assert service.calls == 0


@pytest.fixture
async def channel(service: ExtProcService) -> AsyncIterator[grpc.aio.Channel]:
    """To it, with windows that stay as small as they begin."""
    server = GrpcServer(service.methods(), LIMITS, "127.0.0.1", 0)
    await server.start()
    small = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", (1 << 16) - 1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}", small) as channel:
        yield channel
    await server.drain(0.0)


@pytest.mark.parametrize(
    ("service", "said"),
    [(["first_message_s"], 0), (["next_message_s"], 1)],
    ids=["no-message", "an-upload-that-stalls"],
    indirect=["service"],
)
async def test_a_call_that_says_nothing_more_is_ended(channel: grpc.aio.Channel, said: int) -> None:
    call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(PROCESS)()
    for message in GOOD[:said]:
        await call.write(message)
    assert await call.code() == grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize("service", [["write_s"]], indirect=True)
async def test_an_answer_that_nobody_reads_ends_its_call(
    service: ExtProcService, channel: grpc.aio.Channel
) -> None:
    call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(PROCESS)()
    await call.write(request_headers({":path": "/v1/completions"}))
    await call.write(request_body(b'{"model": "m", "prompt": "%b"}' % (b"x" * (LIMITS.message_bytes // 2))))
    assert await call.read() != grpc.aio.EOF  # the pick; the body that follows is more than a window
    await until(lambda: not service.calls)
    assert not service.budget.held_bytes


@pytest.mark.parametrize("service", [[]], indirect=True)
async def test_a_message_larger_than_the_port_takes_ends_the_call_without_an_answer(
    channel: grpc.aio.Channel,
) -> None:
    """The one thing that grpcio does not serve: no 413 for a body that comes whole, in one message."""
    call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(PROCESS)()
    await call.write(bytes(LIMITS.message_bytes + 1))
    assert await call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
