"""Killed after any of its writes and started again, the operator leaves what an undisturbed one leaves."""

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cluster.chaos.life import Life
from tests.cluster.chaos.proxy import NONE, Call, Fault, Proxy, running_proxy
from tests.cluster.harness.api.account import Account
from tests.cluster.harness.api.connection import Connection, connect
from tests.cluster.harness.operator.operator import Operator, start_operator
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.provider import Cluster
from tests.cluster.harness.stand_ins.gateway_controller import running_gateway_controller

_AT_A_TIME = 3


class _Supervisor:
    """Runs an operator for one namespace; it is killed after its n-th write, once, and started again."""

    def __init__(self, proxy: Proxy, namespace: str, folder: Path) -> None:
        self._proxy, self._namespace, self._folder = proxy, namespace, folder
        self._operator: Operator | None = None
        self._restarting: asyncio.Task[None] | None = None
        self.killed = False

    def start(self) -> None:
        """Starts it."""
        log = self._folder / f"{self._namespace}-{self.killed:d}.log"
        kubeconfig = self._proxy.kubeconfig(self._folder)
        self._operator = start_operator(kubeconfig, log, namespaces=(self._namespace,))

    def kill_after(self, write: int) -> None:
        """From now on its write number `write` is its last."""
        loop = asyncio.get_running_loop()

        def die() -> None:
            assert self._operator
            self._operator.kill()
            self.killed = True
            loop.call_soon_threadsafe(self._restart)

        def choose(call: Call) -> Fault:
            return Fault(after=die, reset=True) if call.write == write and not self.killed else NONE

        self._proxy.choose = choose

    def _restart(self) -> None:
        self._restarting = asyncio.create_task(asyncio.to_thread(self.start))

    async def end(self) -> None:
        """Stops it."""
        if self._restarting:
            await self._restarting
        if self._operator:
            await asyncio.to_thread(self._operator.stop)


@dataclass(frozen=True)
class _Stage:
    """Where lives happen: a cluster, who operators are there, files, what namespaces' names begin with."""

    connection: Connection
    account: Account
    folder: Path
    lives: str


async def _live(
    stage: _Stage, *, write: int = 0, expected: tuple[str, str, str] | None = None
) -> tuple[tuple[str, str, str], int]:
    """One life; returns what there was after each of its steps, and the number of writes."""
    namespace = f"{stage.lives}-{write}"
    folder = stage.folder / namespace
    folder.mkdir()
    async with running_proxy(stage.account.configuration()) as proxy:
        life, supervisor = Life(stage.connection, namespace), _Supervisor(proxy, namespace, folder)
        await asyncio.to_thread(supervisor.start)
        try:
            if write:
                supervisor.kill_after(write)
            seen = []
            for place, step in enumerate((life.create, life.change, life.delete)):
                await step()
                if expected:
                    await life.becomes(expected[place])
                    seen.append(expected[place])
                else:
                    seen.append(await life.settled() if step != life.delete else "{}")
            # Two lives may differ by a status in between, so the last of them may not come.
            assert not write or supervisor.killed or proxy.writes < write
        finally:
            await supervisor.end()
        return (seen[0], seen[1], seen[2]), proxy.writes


async def _all_lives(cluster: Cluster, account: Account, folder: Path, say: Say, most: int) -> None:
    """An undisturbed life, and others in which the operator is killed once, after any of its writes.

    Of those, `most` that are drawn, or all.
    """
    with cluster.client() as api:
        administrator = api.configuration
    async with connect(administrator) as connection, running_gateway_controller(connection):
        stage = _Stage(connection, account, folder, f"life-{most}")
        undisturbed, writes = await _live(stage)
        assert '"HTTPRoute/' in undisturbed[0]
        assert '"HTTPRoute/' not in undisturbed[1]
        drawn = random.Random(1).sample(range(1, writes + 1), min(most, writes))  # noqa: S311 - not for secrets
        say(f"an undisturbed life takes {writes} writes; killing the operator after {len(drawn)} of them")
        slots = asyncio.Semaphore(_AT_A_TIME)

        async def one(write: int) -> None:
            async with slots:
                await _live(stage, write=write, expected=undisturbed)

        async with asyncio.TaskGroup() as lives:
            for write in drawn:
                lives.create_task(one(write))


@pytest.mark.parametrize("most", [6, pytest.param(10_000, marks=pytest.mark.long)], ids=["some", "all"])
def test_killed_after_any_write_it_ends_where_an_undisturbed_one_does(
    busy_cluster: Cluster, account: Account, tmp_path: Path, say: Say, most: int
) -> None:
    asyncio.run(_all_lives(busy_cluster, account, tmp_path, say, most))
