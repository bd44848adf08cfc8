"""The doctor as a pod's init container starts it: a process of its own, in limits that the kernel holds."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from tests.cluster.harness.node.machine.hugepages import reserved_hugepages

from kvtier_operator.planning.pod.demands import Demands

PAGE_BYTES = 2 << 20
_PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() == 0:
        return
    reason = "limits, mounts and huge pages are set as root; run the tests as root"
    for item in items:
        if __package__ in item.nodeid.replace("/", "."):
            item.add_marker(pytest.mark.skip(reason=reason))


@dataclass(frozen=True, slots=True)
class Examined:
    """How a doctor ended.

    Attributes:
        status: Its exit status.
        lines: What it printed.
        message: Its termination message.
    """

    status: int
    lines: list[str]
    message: str


class Examine(Protocol):
    """Starts the doctor below other commands that set limits, such as `prlimit`."""

    def __call__(self, demands: Demands, *below: str) -> Examined: ...


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    def run(demands: Demands, *below: str) -> Examined:
        log = tmp_path / "termination-log"
        environment = {"KVTIER_DEMANDS": demands.to_json(), "NODE_NAME": "gpu-3", "PATH": os.environ["PATH"]}
        kvtier = str(Path(sys.executable).with_name("kvtier"))
        done = subprocess.run(  # noqa: S603 - our own command
            [*below, kvtier, "doctor", "--in-pod", "--termination-log", str(log)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.stderr, done.stderr
        return Examined(done.returncode, done.stdout.splitlines(), log.read_text())

    return run


def free_pages() -> int:
    """Free huge pages of 2 MiB that nobody has reserved."""
    return int((_PAGES / "free_hugepages").read_text()) - int((_PAGES / "resv_hugepages").read_text())


@pytest.fixture
def sixteen_pages() -> Iterator[None]:
    with reserved_hugepages(16):
        yield
