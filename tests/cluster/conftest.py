"""A real API server for the tests in this folder: etcd and kube-apiserver, nothing faked.

The CRD under test is the one that the models generate, installed once.
"""

from collections.abc import Iterator

import pytest
from kubernetes import client
from tests.cluster.harness.control_plane import ControlPlane, running_control_plane
from tests.cluster.harness.custom_resources import install
from tests.cluster.harness.kvcachetiers import KVCacheTiers
from tests.cluster.harness.tools import MissingToolError, program

from kvtier_operator.api.crd import crd

NAMESPACE = "default"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if __package__ in item.nodeid.replace("/", "."):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    missing = ""
    try:
        for name in ("etcd", "kube-apiserver"):
            program(name, reporter.write_line)
    except MissingToolError as error:
        missing = str(error)
    if missing:
        pytest.fail(missing, pytrace=False)
    with running_control_plane(reporter.write_line) as running:
        yield running


@pytest.fixture(scope="session")
def api(control_plane: ControlPlane) -> Iterator[client.ApiClient]:
    with control_plane.client() as api_client:
        yield api_client


@pytest.fixture(scope="session")
def kvcachetiers(api: client.ApiClient) -> KVCacheTiers:
    install(api, crd())
    return KVCacheTiers(api, NAMESPACE)
