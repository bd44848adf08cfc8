"""Real Envoy, real pickers and stand-in engines on loopback; an API server where a picker needs one."""

from collections.abc import Iterator

import pytest
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.chosen import chosen_provider
from tests.cluster.harness.providers.fixtures import made, need
from tests.cluster.harness.providers.provider import Ability, Cluster
from tests.picker.harness.fleet import Fleet, running_fleet
from tests.picker.harness.pool import install_picker_crds


@pytest.fixture(scope="package")
def control_plane(say: Say) -> Iterator[Cluster]:
    """An API server that has what pickers watch."""
    provider = chosen_provider()
    need(provider, Ability.CONTROL_PLANE)
    with made(provider.control_plane(say)) as running:
        install_picker_crds(running)
        yield running


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Three stand-in engines."""
    with running_fleet(3) as engines:
        yield engines
