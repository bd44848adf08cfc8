"""An API server in trouble: refusals, broken connections, watches that fall silent. It converges, calmly."""

import asyncio
import random
import time
from pathlib import Path
from typing import Final

import pytest
from tests.cluster.chaos.life import Life
from tests.cluster.chaos.proxy import NONE, Call, Fault, operator_through
from tests.cluster.chaos.stage import Stage
from tests.cluster.harness.programs.tools import Say

_SHARE_OF_FAULTS: Final = 0.3
_FAULTS: Final = (*(Fault(status=code) for code in (409, 410, 429, 500)), Fault(reset=True))
_PATIENCE_S: Final = 240.0
# One resource and a dozen watches in trouble: retries with backoff, no hot loop.
_MOST_CALLS_A_MINUTE: Final = 1200


class _SomeFaults:
    """Faults drawn at random, the same ones for the same seed and order of calls."""

    def __init__(self, seed: int) -> None:
        self._numbers = random.Random(seed)  # noqa: S311 - not for secrets
        self.chosen = 0

    def __call__(self, _: Call) -> Fault:
        if self._numbers.random() > _SHARE_OF_FAULTS:
            return NONE
        self.chosen += 1
        return self._numbers.choice(_FAULTS)


async def _expected(stage: Stage, folder: Path, namespace: str) -> tuple[str, str]:
    """What an undisturbed operator makes of the life's two states."""
    async with stage.up() as (connection, proxy), operator_through(proxy, folder, namespace):
        life = Life(connection, namespace)
        await life.create()
        first = await life.settled()
        await life.change()
        return first, await life.settled()


async def _through_faults(stage: Stage, folder: Path, say: Say) -> None:
    expected = await _expected(stage, folder, "calm")
    choose = _SomeFaults(seed=1)
    async with stage.up() as (connection, proxy):
        proxy.choose = choose
        start = time.monotonic()
        async with operator_through(proxy, folder, "faulty"):
            life = Life(connection, "faulty")
            await life.create()
            await life.becomes(expected[0], _PATIENCE_S)
            await life.change()
            await life.becomes(expected[1], _PATIENCE_S)
        minutes = (time.monotonic() - start) / 60
    a_minute = len(proxy.calls) / minutes
    say(
        f"{choose.chosen} of {len(proxy.calls)} calls went wrong; converged in {minutes * 60:.0f} s with "
        f"{a_minute:.0f} calls a minute"
    )
    assert choose.chosen > len(_FAULTS)
    assert len(proxy.calls) <= max(minutes, 1) * _MOST_CALLS_A_MINUTE


async def _silent(stage: Stage, folder: Path, say: Say) -> None:
    """All watches open once and say nothing; the changes they would have told of are seen all the same."""
    expected = await _expected(stage, folder, "heard")
    async with stage.up() as (connection, proxy):
        silenced: set[str] = set()

        def choose(call: Call) -> Fault:
            if not call.is_watch or call.path in silenced:
                return NONE
            silenced.add(call.path)
            return Fault(silent=True)

        proxy.choose = choose
        async with operator_through(proxy, folder, "unheard"):
            start = time.monotonic()
            life = Life(connection, "unheard")
            await life.create()
            await life.becomes(expected[0], _PATIENCE_S)
            say(f"{len(silenced)} silent watches; converged after {time.monotonic() - start:.0f} s")


def test_it_converges_when_three_calls_in_ten_go_wrong(stage: Stage, tmp_path: Path, say: Say) -> None:
    asyncio.run(_through_faults(stage, tmp_path, say))


@pytest.mark.long
def test_silent_watches_are_noticed(stage: Stage, tmp_path: Path, say: Say) -> None:
    asyncio.run(_silent(stage, tmp_path, say))
