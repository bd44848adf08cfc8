"""A thousand resources: all become Ready, and an operator that starts again has nothing to write."""

import asyncio
from pathlib import Path
from typing import Final

import pytest
from tests.cluster.harness.operator import start_operator
from tests.cluster.harness.providers.fixtures import need
from tests.cluster.harness.providers.provider import Ability, Provider
from tests.cluster.harness.tools import Say
from tests.cluster.scale.operated import changed, fleet_cluster, settled_writes, until_ready, until_resynced
from tests.cluster.scale.versions import resource_versions

# On two cores the control plane alone takes minutes for eleven thousand objects.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

_COUNT: Final = 1000


async def _thousand(provider: Provider, folder: Path, say: Say) -> None:
    async with fleet_cluster(provider, say) as (connection, kubeconfig):
        operator = start_operator(kubeconfig, folder / "operator.log")
        try:
            seconds = await until_ready(connection, _COUNT)
            writes = await settled_writes(operator)
            say(f"{_COUNT} resources Ready after {seconds:.0f} s, {writes} writes")
            before = await resource_versions(connection)
            operator.kill()
            operator = start_operator(kubeconfig, folder / "operator-restarted.log")
            await until_resynced(operator, _COUNT)
            assert await settled_writes(operator) == 0
            assert changed(before, await resource_versions(connection)) == 0
        finally:
            operator.stop()


def test_a_thousand_become_ready_and_a_restart_writes_nothing(
    provider: Provider, tmp_path: Path, say: Say
) -> None:
    need(provider, Ability.CONTROL_PLANE)
    asyncio.run(_thousand(provider, tmp_path, say))
