"""Calls that are held until their connection's time is over."""

import asyncio

import pytest

from kvtier_scorer.picker.gateway.transport.resets import HeldCalls, HoldLimits


@pytest.fixture
def ended() -> list[str]:
    return []


@pytest.fixture
def held(ended: list[str]) -> HeldCalls:
    return HeldCalls(HoldLimits(), ended.append)


async def begun(held: HeldCalls, peer: str) -> "asyncio.Task[None]":
    task = asyncio.create_task(held.hold(peer))
    await asyncio.sleep(0)
    return task


async def test_the_calls_of_a_connection_end_together_and_it_is_told_once(ended: list[str]) -> None:
    held = HeldCalls(HoldLimits(hold_s=0.01), ended.append)
    await asyncio.gather(*[await begun(held, "a") for _ in range(3)])
    assert ended == ["a"]


async def test_who_cancels_a_held_call_gets_no_stream_back(held: HeldCalls, ended: list[str]) -> None:
    task = await begun(held, "a")
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
    held.release()
    await task
    assert not ended


async def test_no_more_are_held_than_there_is_memory_for(ended: list[str]) -> None:
    held = HeldCalls(HoldLimits(calls=2), ended.append)
    first = await begun(held, "a")
    assert not held.is_full
    second = await begun(held, "b")
    assert held.is_full
    held.release()
    await asyncio.gather(first, second)
    assert not held.is_full
