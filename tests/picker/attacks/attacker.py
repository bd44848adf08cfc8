"""An attacker as a process: prepares, says so, and attacks once it is told to.

python -m tests.picker.attacks.attacker ping --target '{"port": 9002}' --seconds 4
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import click
from tests.picker.attacks.attackers.tally import Tally, cut_off
from tests.picker.attacks.attackers.target import Target
from tests.picker.attacks.catalogue import ATTACKS, Attack
from tests.picker.attacks.child import say

_NICE: Final = 10
"""What an attacker costs the processor is another machine's: the neighbour here comes first."""
_CUT_OFF_S: Final = 60.0


async def _run(attack: Attack, target: Target, seconds: float) -> Tally:
    tally, evil = Tally(), asyncio.Event()
    prepared = attack.pod(target, tally, evil) if attack.pod else _client(attack, target, tally, evil)
    async with prepared:
        say("ready")
        if not await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
            return tally  # nobody is there to tell it
        evil.set()
        await asyncio.sleep(seconds)
        if attack.is_cut_off:
            await _until_cut_off(tally)
        return +tally


async def _until_cut_off(tally: Tally) -> None:
    """On a busy machine the least that an attacker has to come to takes longer than an attack does."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_CUT_OFF_S):
            while not cut_off(tally):  # noqa: ASYNC110 - a tally tells nobody
                await asyncio.sleep(0.1)


@asynccontextmanager
async def _client(attack: Attack, target: Target, tally: Tally, evil: asyncio.Event) -> AsyncIterator[None]:
    assert attack.client is not None
    client = attack.client

    async def run() -> None:
        await evil.wait()
        await client(target, tally)

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        if not task.done():
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@click.command()
@click.argument("name", type=click.Choice(list(ATTACKS)))
@click.option("--target", required=True, help="A Target in JSON.")
@click.option("--seconds", type=float, required=True)
def main(name: str, target: str, seconds: float) -> None:
    """Attack once standard input has a line, and print what came of it."""
    os.nice(_NICE)
    say(asyncio.run(_run(ATTACKS[name], Target(**json.loads(target)), seconds)))


if __name__ == "__main__":
    main()
