"""Real servers for these tests, and a look at what each test leaves."""

import threading
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from tests.shared.stores import EVERY_PROGRAM, Store, running, time_for_values

from kvtier_connector.core.remote.store import StoreConnection


@pytest.fixture(scope="module", params=EVERY_PROGRAM)
def program(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def module_store(program: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Store]:
    with running(program, tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture
def store(module_store: Store) -> Store:
    """A server with nothing in it."""
    module_store.ask("FLUSHALL")
    return module_store


@pytest.fixture
def own_store(program: str, tmp_path: Path) -> Generator[Store]:
    """A server that a test may kill or set otherwise."""
    with running(program, tmp_path) as store:
        yield store


@pytest.fixture
def connection(store: Store) -> Generator[StoreConnection]:
    with closing(store.connect()) as connection:
        yield connection


@pytest.fixture(autouse=True)
def unhurried() -> Generator[None]:
    with time_for_values():
        yield


@pytest.fixture(autouse=True)
def nothing_left() -> Generator[None]:
    """No test leaves a socket or a thread."""
    sockets, threads = _sockets(), set(threading.enumerate())
    yield
    assert _sockets() <= sockets
    assert set(threading.enumerate()) <= threads  # one of an earlier test's may have ended


def _sockets() -> int:
    """Those that listen or are connected: ports for servers stay bound."""
    return len(psutil.Process().net_connections("tcp"))
