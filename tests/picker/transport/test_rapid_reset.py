"""A client that resets its calls loses its connection, and nobody else does."""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.picker.attacks.attackers.blocks import PLAIN
from tests.picker.fuzz.conftest import PROCESS
from tests.picker.fuzz.inputs import GOOD
from tests.picker.transport import wire
from tests.picker.transport.conftest import ECHO, LIMITS, until
from tests.unit.scorer.picker.gateway.ext_proc.test_service import Picks

from kvtier_scorer.picker.gateway.body_memory import BodyBudget
from kvtier_scorer.picker.gateway.ext_proc.service import ExtProcService, RequestReader
from kvtier_scorer.picker.gateway.transport import server as limits
from kvtier_scorer.picker.gateway.transport.connections import CALLS, HoldLimits, disconnect
from kvtier_scorer.picker.gateway.transport.server import NICE, POOL, GrpcServer
from kvtier_scorer.picker.observability.logs import LogRateLimiter

_WAIT_S = 30.0
_CANCEL = (8).to_bytes(4, "big")
_REFUSED = (7).to_bytes(4, "big")
_END_STREAM = 1


@pytest.fixture
def hold_limits() -> HoldLimits:
    return HoldLimits()


@pytest.fixture
def service(hold_limits: HoldLimits) -> ExtProcService:
    picks: Any = Picks()
    budget = BodyBudget(LIMITS.message_bytes, LIMITS.message_bytes, lambda: 0.0)
    rate_limited_log = LogRateLimiter(logging.getLogger("picker"), 10, lambda: 0.0)
    return ExtProcService(
        scheduler=picks,
        requests=RequestReader(None),
        clock=lambda: 0.0,
        budget=budget,
        uploads=BodyBudget(1 << 30, LIMITS.message_bytes, lambda: 0.0),
        rate_limited_log=rate_limited_log,
        hold_limits=hold_limits,
    )


@pytest.fixture(params=["127.0.0.1", ""], ids=["ipv4", "every-address"])
async def picker(service: ExtProcService, request: pytest.FixtureRequest) -> AsyncIterator[GrpcServer]:
    server = GrpcServer(service.methods(), LIMITS, request.param, 0)
    await server.start()
    yield server
    await server.drain(0.0)


async def _answered(channel: grpc.aio.Channel) -> "grpc.aio.StreamStreamCall[bytes, bytes]":
    call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(PROCESS)()
    for message in GOOD:
        await call.write(message)
    assert await call.read() != grpc.aio.EOF
    return call


async def _reset_until(ended: "asyncio.Future[Any]", peer: wire.Peer) -> None:
    peer.writer.write(wire.frame(wire.SETTINGS, 1, 0))
    number = 1
    while not ended.done():
        peer.writer.write(wire.frame(wire.HEADERS, wire.END_HEADERS, number, PLAIN))
        peer.writer.write(wire.frame(wire.RST_STREAM, 0, number, _CANCEL))
        number += 2
        await asyncio.sleep(0)


async def test_who_resets_calls_has_no_streams_left(service: ExtProcService, picker: GrpcServer) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{picker.port}") as neighbour, asyncio.timeout(_WAIT_S):
        open_meanwhile = await _answered(neighbour)
        async with wire.connected(picker.port) as peer:
            refused = asyncio.ensure_future(peer.until(wire.RST_STREAM))
            await _reset_until(refused, peer)
            assert refused.result().payload == _REFUSED
        await _answered(neighbour)
        assert not open_meanwhile.done()
        service.drain()
    assert not service.counters.connections_cut_off


@pytest.mark.parametrize("hold_limits", [HoldLimits(hold_s=0.01)])
async def test_the_port_of_one_who_is_gone_is_forgotten(
    service: ExtProcService, picker: GrpcServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = asyncio.Event()
    monkeypatch.setattr("kvtier_scorer.picker.gateway.ext_proc.calls.disconnect", lambda _: gone.set())
    async with asyncio.timeout(_WAIT_S), wire.connected(picker.port) as peer:
        await _reset_until(asyncio.ensure_future(gone.wait()), peer)
    # calls that still waited are counted anew, and forgotten in turn
    resets = service._resets
    await until(lambda: not any(map(resets.is_suspect, tuple(resets._counts))))
    assert not service.counters.connections_cut_off


@pytest.mark.parametrize(
    "hold_limits", [HoldLimits(hold_s=0.01), HoldLimits(calls=0)], ids=["at-last", "no-room"]
)
async def test_resets_end_their_connection_alone(
    service: ExtProcService, picker: GrpcServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{picker.port}") as neighbour, asyncio.timeout(_WAIT_S):
        open_meanwhile = await _answered(neighbour)
        async with wire.connected(picker.port) as peer:
            await _reset_until(asyncio.create_task(peer.frames()), peer)
        await _answered(neighbour)
        assert not open_meanwhile.done()
    assert service.counters.connections_cut_off == 1
    [told] = [line for line in caplog.messages if "is ended" in line]
    assert "127.0.0.1" in told


async def test_calls_that_are_cancelled_when_they_have_their_answer_end_nothing(
    service: ExtProcService, picker: GrpcServer
) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{picker.port}") as gateway, asyncio.timeout(_WAIT_S):
        for _ in range(CALLS):
            (await _answered(gateway)).cancel()
        await _answered(gateway)
    assert not service.counters.connections_cut_off


async def test_an_honest_gateway_may_give_up_some_calls(service: ExtProcService, picker: GrpcServer) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{picker.port}") as gateway, asyncio.timeout(_WAIT_S):
        kept = await _answered(gateway)
        for _ in range(CALLS):
            begun: grpc.aio.StreamStreamCall[bytes, bytes] = gateway.stream_stream(PROCESS)()
            begun.cancel()
            (await _answered(gateway)).cancel()
            (await _answered(gateway)).cancel()
        assert not kept.done()
    assert not service.counters.connections_cut_off


@pytest.mark.parametrize("peer", ["ipv4:127.0.0.1:1", "ipv6:%5B::1%5D:1"])
def test_a_connection_that_is_gone_is_not_there_to_be_ended(peer: str) -> None:
    assert not disconnect(peer)


async def test_streams_that_have_just_ended_are_refused_to_nobody(server: GrpcServer) -> None:
    """Who opens as many as are allowed, and as many again once those have ended, as Envoy does."""
    header = wire.call_headers(ECHO)
    async with asyncio.timeout(_WAIT_S), wire.connected(server.port) as peer:
        peer.writer.write(wire.frame(wire.SETTINGS, 1, 0))
        number = 1
        for _ in range(50):
            for _ in range(limits.STREAMS):
                flags = wire.END_HEADERS | _END_STREAM
                peer.writer.write(wire.frame(wire.HEADERS, flags, number, header))
                number += 2
            ended = 0
            while ended < limits.STREAMS:
                found = await peer.next()
                assert found.kind != wire.RST_STREAM
                ended += found.kind == wire.HEADERS and found.flags & _END_STREAM


@pytest.mark.usefixtures("server")
async def test_the_loop_comes_before_the_c_cores_pool() -> None:
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) < NICE
    await until(lambda: _pool() == {(name, NICE) for name in POOL})


@pytest.mark.usefixtures("server")
async def test_threads_that_are_named_after_the_start_are_in_the_pool_too() -> None:
    """A thread has its parent's name until it runs."""
    ended = threading.Event()
    late = threading.Thread(target=_run_in_pool, args=[ended])
    late.start()
    try:
        await until(lambda: os.getpriority(os.PRIO_PROCESS, late.native_id or 0) == NICE)
    finally:
        ended.set()
        late.join()


def _run_in_pool(ended: threading.Event) -> None:
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("event_engine")
    ended.wait()


def _pool() -> set[tuple[str, int]]:
    named = {task.name: (task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()}
    return {
        (name, os.getpriority(os.PRIO_PROCESS, int(task))) for task, name in named.items() if name in POOL
    }
