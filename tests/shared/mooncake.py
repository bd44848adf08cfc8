"""A real Mooncake store on loopback: a master, and a process that lends it memory.

Its programs are PyPI's. What they load is Debian's, and installed where that can be done; elsewhere tests
that need it fail, and say what is missing: they are long ones.
"""

import signal
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process
from tests.shared.debian import can_install, install_packages, missing_packages
from tests.shared.stores import ENOUGH_S, HOST

from kvtier_connector.core.remote.mooncake.store import MooncakeStore
from kvtier_connector.core.remote.store import StoreConnection, Value
from kvtier_connector.core.remote.urls import Address
from kvtier_connector.errors import RemoteError

SEGMENT: Final = "256MB"
_FOLDER: Final = "/usr/lib/x86_64-linux-gnu"
_LIBRARIES: Final = {
    "libibverbs1": f"{_FOLDER}/libibverbs.so.1",
    "libnuma1": f"{_FOLDER}/libnuma.so.1",
    "libcurl4": f"{_FOLDER}/libcurl.so.4",
}


@dataclass(frozen=True)
class Mooncake:
    """Both processes, which run."""

    master: Process
    memory: Process
    address: Address

    @property
    def store(self) -> MooncakeStore:
        """As the connector knows it."""
        return MooncakeStore(self.address, ENOUGH_S)

    @property
    def url(self) -> str:
        """As a resource names it."""
        return f"mooncake://{self.address}"

    def connect(self) -> StoreConnection:
        """Connect as the connector does."""
        return self.store.connect()

    def takes_values(self) -> bool:
        """Tell whether it is ready: the master has memory."""
        try:
            with closing(self.connect()) as connection:
                connection.put(Value(b"ready", (memoryview(b"ready"),)), 0, ENOUGH_S)
        except RemoteError:
            return False
        return True


def stop(process: Process) -> None:
    """Keep one of them from running, and wait until none of its threads does."""
    process.send(signal.SIGSTOP)
    threads = Path(f"/proc/{process.pid}/task")
    process.wait_until(
        lambda: all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in threads.glob("*/stat"))
    )


@contextmanager
def mooncake_running(folder: Path, segment: str = SEGMENT) -> Generator[Mooncake]:
    """Run a store until the end of the block."""
    programs = _programs()
    master_port, metrics_port, memory_port = free_ports(3)
    address = Address(HOST, master_port)
    master = Process(
        [
            *(programs / "mooncake_master", "--rpc_address", HOST, "--rpc_port", str(master_port)),
            *("--metrics_host", HOST, "--metrics_port", str(metrics_port)),
        ],
        folder / "master.log",
    )
    try:
        master.wait_until_log("Master service started")
        memory = Process(
            [
                *(programs / "mooncake_client", "--host", HOST, "--port", str(memory_port)),
                *("--master_server_address", str(address), "--metadata_server", "P2PHANDSHAKE"),
                *("--global_segment_size", segment),
            ],
            folder / "memory.log",
        )
        try:
            mooncake = Mooncake(master, memory, address)
            memory.wait_until(mooncake.takes_values)
            yield mooncake
        finally:
            memory.kill()
    finally:
        master.kill()


def _programs() -> Path:
    """Where PyPI's package has the programs; fails the test where they cannot run."""
    if missing_packages(_LIBRARIES) and can_install():
        install_packages(_LIBRARIES, print)
    try:
        import mooncake.store as loaded  # noqa: PLC0415 - what it loads may be missing
    except ImportError as error:
        missing = " ".join(missing_packages(_LIBRARIES))
        needed = f"apt-get install {missing}" if missing else "make setup-light"
        pytest.fail(f"Mooncake cannot be loaded ({error}): {needed}")
    return Path(loaded.__file__).parent
