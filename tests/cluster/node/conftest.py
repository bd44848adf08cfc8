"""kvtier installed with helm on a real node, where real engines run."""

from collections.abc import Iterator

import pytest
from tests.cluster.harness.installed import Site, running_site
from tests.cluster.harness.providers.fixtures import made, need
from tests.cluster.harness.providers.provider import Ability, Provider
from tests.cluster.harness.tools import Say
from tests.cluster.node.engines import KINDS, Engines

HUGEPAGES = 160


@pytest.fixture(scope="package")
def site(provider: Provider, say: Say) -> Iterator[Site]:
    need(provider, Ability.NODE)
    with made(running_site(provider, say, hugepages=HUGEPAGES)) as running:
        yield running


@pytest.fixture(scope="package", params=list(KINDS))
def engines(site: Site, request: pytest.FixtureRequest) -> Iterator[Engines]:
    """Two engines of a kind; they end while those of the next start."""
    running = Engines(site, request.param)
    yield running
    site.kubectl("delete", "kvct", running.name, "--wait=false")
