"""Many resources: all become Ready, and an operator that starts again has nothing to write."""

import asyncio
from pathlib import Path
from typing import Final

import pytest
from tests.cluster.harness.operator.operator import start_operator
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.fixtures import need
from tests.cluster.harness.providers.provider import Ability, Provider
from tests.cluster.scale.operated import (
    count_changes,
    fleet_cluster,
    settled_writes,
    until_ready,
    until_resynced,
)
from tests.cluster.scale.versions import resource_versions

# On two cores the control plane alone takes minutes for eleven thousand objects.
_THOUSAND: Final = pytest.param(1000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])


async def _many(provider: Provider, folder: Path, say: Say, count: int) -> None:
    async with fleet_cluster(provider, say) as (connection, kubeconfig):
        operator = start_operator(kubeconfig, folder / "operator.log")
        try:
            seconds = await until_ready(connection, count)
            writes = await settled_writes(operator)
            say(f"{count} resources Ready after {seconds:.0f} s, {writes} writes")
            before = await resource_versions(connection)
            operator.kill()
            operator = start_operator(kubeconfig, folder / "operator-restarted.log")
            await until_resynced(operator, count)
            assert await settled_writes(operator) == 0
            assert count_changes(before, await resource_versions(connection)) == 0
        finally:
            operator.stop()


@pytest.mark.parametrize("count", [20, _THOUSAND])
def test_all_become_ready_and_a_restart_writes_nothing(
    provider: Provider, tmp_path: Path, say: Say, count: int
) -> None:
    need(provider, Ability.CONTROL_PLANE)
    asyncio.run(_many(provider, tmp_path, say, count))
