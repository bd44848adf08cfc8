"""kvtier installed with helm on a real node, where real engines run."""

from collections.abc import Iterator

import pytest
from tests.cluster.harness.operator.installed import Site, running_site
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.fixtures import made, need
from tests.cluster.harness.providers.provider import Ability, Provider
from tests.cluster.node.engines import OURS, UPSTREAMS, Engines
from tests.picker.harness.bootstrap import Gateway
from tests.picker.harness.envoy import Envoy, running_envoy

HUGEPAGES = 160
EXT_PROC = 9002


@pytest.fixture(scope="package")
def site(provider: Provider, say: Say) -> Iterator[Site]:
    need(provider, Ability.NODE)
    with made(running_site(provider, say, hugepages=HUGEPAGES)) as running:
        yield running


@pytest.fixture(scope="package", params=[OURS, pytest.param(UPSTREAMS, marks=pytest.mark.long)])
def engines(site: Site, request: pytest.FixtureRequest) -> Iterator[Engines]:
    """Two engines of a kind; they end while those of the next start."""
    running = Engines(site, request.param)
    yield running
    site.kubectl("delete", "kvct", running.name, "--wait=false")


@pytest.fixture(scope="module")
def envoy(engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    service = engines.site.kubectl.json("get", "service", f"{engines.name}-picker")["spec"]["clusterIP"]
    gateway = Gateway("one", (service, EXT_PROC), tls=True, message_timeout_s=30, response_body=True)
    with running_envoy([gateway], tmp_path_factory.mktemp("envoy")) as started:
        yield started
