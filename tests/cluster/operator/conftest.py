"""One operator on an API server without controllers: what Deployments and pods say is the test's."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from tests.cluster.harness.api.account import Account
from tests.cluster.harness.api.custom_resources import install
from tests.cluster.harness.operator.operator import Operator, running_operator
from tests.cluster.harness.operator.shipped import shipped_account
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.fixtures import made, need
from tests.cluster.harness.providers.provider import Ability, Cluster, Provider
from tests.cluster.operator.world import World, create_namespace

from kvtier_operator.api.schema.crd import crd

_LOG_LINES = 30
_NUMBERS = count(1)


@contextmanager
def _served(provider: Provider, say: Say) -> Iterator[Cluster]:
    """An API server that knows KVCacheTiers."""
    need(provider, Ability.CONTROL_PLANE)
    with made(provider.control_plane(say)) as running:
        with running.client() as api:
            install(api, crd())
        yield running


@pytest.fixture(scope="package")
def server(provider: Provider, say: Say) -> Iterator[Cluster]:
    with _served(provider, say) as running:
        yield running


@pytest.fixture(scope="package")
def account(server: Cluster, say: Say) -> Iterator[Account]:
    """Who the operator is."""
    with made(shipped_account(server, say)) as shipped:
        yield shipped


@pytest.fixture(scope="package")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("operator") / "operator.log"


@pytest.fixture(scope="package")
def operator(account: Account, log: Path) -> Iterator[Operator]:
    with running_operator(account.kubeconfig(), log) as running:
        yield running


@pytest.fixture
def world(server: Cluster, operator: Operator) -> Iterator[World]:
    """A namespace of its own under the running operator."""
    del operator
    with server.client() as api:
        yield World(api, create_namespace(api, f"world-{next(_NUMBERS)}"))


@pytest.fixture
def quiet_server(provider: Provider, say: Say) -> Iterator[Cluster]:
    """An API server where no operator runs but the test's own."""
    with _served(provider, say) as running:
        yield running


@pytest.fixture
def own_account(quiet_server: Cluster, say: Say) -> Iterator[Account]:
    with made(shipped_account(quiet_server, say)) as shipped:
        yield shipped


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows the end of the operator's log beside a failure."""
    report = yield
    path = getattr(item, "funcargs", {}).get("log")
    if report.failed and isinstance(path, Path) and path.is_file():
        lines = path.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        report.sections.append(("the operator's log", "\n".join(lines)))
    return report


@pytest.fixture(autouse=True)
def _with_log(log: Path) -> None:
    """So that the report of every test finds the log."""
    del log
