"""Calls that are reset: how they are counted, and how long they are held."""

import asyncio

import pytest

from kvtier_scorer.picker.gateway.transport.connections import CALLS, HeldCalls, HoldLimits, PrematureResets


def counted(resets: PrematureResets, peer: str, calls: str) -> str:
    """Whether the connection was suspect, after each call: `x` is a premature reset."""
    seen = ""
    for call in calls:
        resets.count_call(peer, premature=call == "x")
        seen += "S" if resets.is_suspect(peer) else "."
    return seen


def test_nothing_but_resets_makes_a_connection_suspect_at_half_of_the_calls() -> None:
    half = CALLS // 2
    assert counted(PrematureResets(), "a", "x" * 2 * half) == "." * (half - 1) + "S" * (half + 1)


def test_a_gateway_some_of_whose_clients_hang_up_is_not_suspect() -> None:
    assert "S" not in counted(PrematureResets(), "a", "ox" * (CALLS // 2 - 1))
    assert "S" not in counted(PrematureResets(), "a", "oxo" * 10 * CALLS)


def test_what_goes_well_counts_before_and_after() -> None:
    resets = PrematureResets()
    counted(resets, "a", "o" * 10 * CALLS)
    assert "S" not in counted(resets, "a", "x" * (10 * CALLS - 1))
    assert counted(resets, "a", "xo") == "S."


def test_each_connection_answers_for_itself() -> None:
    resets = PrematureResets()
    counted(resets, "a", "x" * (CALLS // 2 - 1))
    assert counted(resets, "b", "x") == "."
    assert counted(resets, "a", "x") == "S"


def test_a_port_that_is_another_clients_now_begins_anew() -> None:
    resets = PrematureResets()
    assert counted(resets, "a", "x" * (CALLS // 2)).endswith("S")
    resets.forget("a")
    assert not resets.is_suspect("a")
    assert "S" not in counted(resets, "a", "x" * (CALLS // 2 - 1))


def test_those_that_called_longest_ago_are_forgotten() -> None:
    resets = PrematureResets(most_peers=2)
    for peer in "abac":
        counted(resets, peer, "x" * (CALLS // 5))
    assert "S" not in counted(resets, "b", "x" * (CALLS // 5))
    counted(resets, "c", "o")
    assert len(resets._counts) == 2


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
