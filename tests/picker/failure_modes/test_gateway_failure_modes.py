"""FailOpen and FailClose of a local run: the picker killed, hung and slow."""

import asyncio
import os
import signal
from functools import partial

import pytest
from tests.picker.failure_modes.conftest import Client, StartGateway, StartRelayed

from kvtier_operator.api.spec.router import FailureMode
from kvtier_operator.runtime.gateway import LocalGateway
from kvtier_operator.runtime.guard import descendants
from kvtier_operator.runtime.process import SupervisedProcess, wait_until

OPEN, CLOSE = FailureMode.FAIL_OPEN, FailureMode.FAIL_CLOSE


def picker_of(gateway: LocalGateway) -> SupervisedProcess:
    assert gateway.picker is not None
    return gateway.picker


def send(process: SupervisedProcess, number: signal.Signals) -> None:
    for pid in descendants(process.guard_pid):
        os.kill(pid, number)


async def as_the_mode_says(client: Client, mode: FailureMode, requests: int) -> None:
    """Every request without a pick: passed on to each engine in turn, or refused."""
    engines = []
    for _ in range(requests):
        status, served = await client.ask()
        if mode is CLOSE:
            assert (status, served) == (503, None)
            continue
        assert status == 200
        assert served is not None
        assert served.picked is None
        engines.append(served.engine)
    assert len(set(engines)) == (2 if mode is OPEN and requests > 1 else len(engines))


async def test_one_prompt_goes_to_one_engine_whatever_a_client_writes(start_gateway: StartGateway) -> None:
    async with start_gateway(OPEN) as (gateway, client):
        home = await client.picked()
        other = next(str(engine) for engine in gateway.engines if str(engine) != home)
        for _ in range(3):
            assert await client.picked() == home
        status, served = await client.ask(**{"x-gateway-destination-endpoint": other})
        assert (status, served and served.engine) == (200, home)
        assert await client.get("/v1/models") == 200


@pytest.mark.parametrize("mode", FailureMode)
async def test_a_picker_that_was_killed_is_started_again(
    mode: FailureMode, start_gateway: StartGateway
) -> None:
    async with start_gateway(mode) as (gateway, client):
        await client.picked()
        killed, restarted = picker_of(gateway), asyncio.Event()
        gateway.say = lambda _: restarted.set()
        send(killed, signal.SIGKILL)
        await killed.wait()
        await as_the_mode_says(client, mode, 4)
        await restarted.wait()
        assert gateway.envoy is not None
        await wait_until(gateway.envoy, partial(is_picked, client), timeout_s=120)
        assert picker_of(gateway) is not killed


async def is_picked(client: Client) -> bool:
    _, served = await client.ask()
    return served is not None and served.picked is not None


@pytest.mark.parametrize("mode", FailureMode)
async def test_a_picker_that_hangs_holds_nobody_up(mode: FailureMode, start_gateway: StartGateway) -> None:
    async with start_gateway(mode) as (gateway, client):
        await client.picked()
        send(picker_of(gateway), signal.SIGSTOP)
        await as_the_mode_says(client, mode, 2)
        send(picker_of(gateway), signal.SIGCONT)
        await client.picked()


@pytest.mark.parametrize("mode", FailureMode)
async def test_a_slow_picker_is_waited_for_as_long_as_it_may_take(
    mode: FailureMode, start_relayed: StartRelayed
) -> None:
    async with start_relayed(mode) as (relay, client):
        await client.picked()
        relay.flowing.clear()
        relay.asked.clear()
        slow = asyncio.create_task(client.picked())
        await relay.asked.wait()
        relay.flowing.set()
        await slow
        relay.flowing.clear()
        await as_the_mode_says(client, mode, 2)
        relay.flowing.set()  # what comes now is too late for anybody
        await client.picked()
