"""A cluster that kvtier's CRD comes to and goes from, with the CRDs of what kvtier builds on."""

import json
from collections.abc import Iterator

import pytest
from kubernetes import client
from tests.cluster.harness.api.commands import Command, command
from tests.cluster.harness.api.custom_resources import install
from tests.cluster.harness.control_plane.cluster import running_cluster
from tests.cluster.harness.control_plane.control_plane import ControlPlane
from tests.cluster.harness.operator.places import CRD, SYSTEM
from tests.cluster.harness.operator.shipped import SYSTEM_NAMESPACE
from tests.cluster.harness.programs.modules import published_crds
from tests.cluster.harness.programs.tools import MissingToolError, Say, programs


@pytest.fixture(scope="package")
def site(say: Say) -> Iterator[ControlPlane]:
    """API server and controllers, no node; nothing of kvtier's is installed."""
    missing = ""
    try:
        programs(["kubectl", "helm"], say)
    except MissingToolError as error:
        missing = str(error)
    if missing:
        pytest.fail(missing, pytrace=False)
    with running_cluster(say) as running:
        with running.client() as api:
            for definition in published_crds():
                install(api, definition)
        yield running


@pytest.fixture(scope="package")
def site_api(site: ControlPlane) -> Iterator[client.ApiClient]:
    with site.client() as api:
        yield api


@pytest.fixture(scope="package")
def kubectl(site: ControlPlane, tmp_path_factory: pytest.TempPathFactory, say: Say) -> Command:
    return command("kubectl", site.kubeconfig(), tmp_path_factory.mktemp("kubectl"), say)


@pytest.fixture(scope="package")
def helm(site: ControlPlane, tmp_path_factory: pytest.TempPathFactory, say: Say) -> Command:
    return command("helm", site.kubeconfig(), tmp_path_factory.mktemp("helm"), say)


@pytest.fixture(scope="module")
def system(kubectl: Command, helm: Command) -> Iterator[str]:
    """The operator's namespace, as restricted as can be; of kvtier's nothing is left afterwards but that."""
    kubectl("apply", "--filename", "-", stdin=json.dumps(SYSTEM_NAMESPACE))
    yield SYSTEM
    _uninstall(kubectl, helm)


@pytest.fixture
def clean_system(kubectl: Command, helm: Command, system: str) -> Iterator[str]:
    """The same for one test."""
    yield system
    _uninstall(kubectl, helm)


def _uninstall(kubectl: Command, helm: Command) -> None:
    for release in json.loads(helm("list", "--namespace", SYSTEM, "--output", "json")):
        helm("uninstall", release["name"], "--namespace", SYSTEM, "--wait")
    kubectl("delete", CRD, "--ignore-not-found")


@pytest.fixture
def namespace(kubectl: Command, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for one test; it is being deleted when the test ends."""
    name = f"t{abs(hash(request.node.nodeid)) % 10**8}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")
