"""Real clusters for the tests in this folder, nothing faked; how much of one is the fixture's name.

The CRD under test is the one that the models generate, installed once.
"""

from collections.abc import Iterator

import pytest
from kubernetes import client
from tests.cluster.harness.api.custom_resources import install
from tests.cluster.harness.api.kvcachetiers import KVCacheTiers
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.chosen import chosen_provider
from tests.cluster.harness.providers.fixtures import made, need
from tests.cluster.harness.providers.provider import Ability, Cluster, Provider

from kvtier_operator.api.schema.crd import crd

NAMESPACE = "default"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if __package__ in item.nodeid.replace("/", "."):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def provider() -> Provider:
    """What makes the clusters: see KVTIER_TEST_PROVIDER."""
    return chosen_provider()


@pytest.fixture(scope="package")
def control_plane(provider: Provider, say: Say) -> Iterator[Cluster]:
    """An API server, for what needs no more."""
    need(provider, Ability.CONTROL_PLANE)
    with made(provider.control_plane(say)) as running:
        yield running


@pytest.fixture(scope="package")
def cluster(provider: Provider, say: Say) -> Iterator[Cluster]:
    """A cluster with all the controllers; whoever installs something in it removes it again."""
    need(provider, Ability.CLUSTER)
    with made(provider.cluster(say)) as running:
        yield running


@pytest.fixture(scope="package")
def api(control_plane: Cluster) -> Iterator[client.ApiClient]:
    with control_plane.client() as api_client:
        yield api_client


@pytest.fixture(scope="package")
def kvcachetiers(api: client.ApiClient) -> KVCacheTiers:
    install(api, crd())
    return KVCacheTiers(api, NAMESPACE)
