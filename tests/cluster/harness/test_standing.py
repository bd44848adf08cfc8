"""`make cluster-up`, and what is left of a node: nothing, also where its process is killed."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from kubernetes import client, config
from tests.cluster.harness import standing
from tests.cluster.harness.node.machine.leftovers import remove_leftovers
from tests.cluster.harness.providers.fixtures import need
from tests.cluster.harness.providers.provider import Ability, Provider
from tests.shared.waiting import eventually

pytestmark = pytest.mark.long  # a node and its images for each; tests/cluster/node/ has one for all
POOL = Path("/proc/sys/vm/nr_hugepages")


class Traces(NamedTuple):
    """What nodes leave in places where another node's may be too: that of the tests before these."""

    links: set[str]
    cgroups: set[str]
    folders: set[str]
    pool: str


Before = tuple[Traces, set[str]]


def _links() -> set[str]:
    return {path.name for path in Path("/sys/class/net").glob("kvtier*")}


def _cgroups() -> set[str]:
    return {str(path) for path in Path("/sys/fs/cgroup").glob("*/kvtier*")}


def _networks() -> set[str]:
    """Network namespaces, other than this one, in which a process runs: a node's, and its pods'.

    Not the processes: another node's programs start others meanwhile. Its pods may end, so there can be fewer
    than before.
    """
    own = Path("/proc/self/ns/net").readlink()
    found = set()
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        with suppress(OSError):  # ended meanwhile, or the kernel's own
            found.add(str(path.readlink()))
    return found - {str(own)}


def _folders(temporary: Path) -> set[str]:
    """Of clusters and nodes."""
    return {path.name for kind in ("cluster", "node") for path in temporary.glob(f"kvtier-{kind}-*")}


def _traces(temporary: Path) -> Traces:
    return Traces(_links(), _cgroups(), _folders(temporary), POOL.read_text())


def _up(folder: Path, temporary: Path) -> int:
    """As a person does it, from a shell."""
    command = [sys.executable, "-m", "tests.cluster.harness.standing", "up", str(folder)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    return subprocess.run(command, check=False, env=environment).returncode  # noqa: S603 - our own command


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Where no other test's clusters are. The path is short, because sockets have to lie there."""
    with tempfile.TemporaryDirectory(prefix="up-") as folder:
        yield Path(folder)


@pytest.fixture
def before(provider: Provider, temporary: Path) -> Before:
    need(provider, Ability.NODE)
    remove_leftovers()  # of runs before this one
    return _traces(temporary), _networks()


@pytest.fixture
def up(before: object, tmp_path: Path, temporary: Path) -> Iterator[standing.Standing]:
    del before
    assert _up(tmp_path, temporary) == 0
    assert _folders(temporary)
    found = standing.standing(tmp_path)
    assert found
    yield found
    standing.down(tmp_path)


def test_is_a_cluster_until_it_is_taken_down(
    before: Before, up: standing.Standing, tmp_path: Path, temporary: Path
) -> None:
    with config.new_client_from_config(up.kubeconfig) as api:
        (node,) = client.CoreV1Api(api).list_node().items
    assert node.status.allocatable["hugepages-2Mi"] != "0"
    assert _up(tmp_path, temporary) == 0  # says that it is up
    assert standing.standing(tmp_path) == up
    assert standing.down(tmp_path) == 0
    traces, networks = before
    assert _traces(temporary) == traces
    assert _networks() <= networks
    assert not Path(up.kubeconfig).exists()


def test_killed_leaves_nothing_that_the_next_does_not_remove(
    before: Before, up: standing.Standing, temporary: Path
) -> None:
    traces, networks = before
    os.kill(up.pid, signal.SIGKILL)
    eventually(
        lambda: _networks() <= networks and _links() == traces.links, "end of the node's processes and link"
    )
    remove_leftovers()
    assert _traces(temporary) == traces
