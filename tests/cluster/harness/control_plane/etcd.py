"""etcd: one member on loopback, without fsync, since its data are gone with the test."""

from dataclasses import dataclass
from pathlib import Path

from tests.cluster.harness.programs.healthz import answers_ok
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process


@dataclass(frozen=True, slots=True)
class Etcd:
    """A running etcd."""

    url: str
    process: Process


def start_etcd(program: Path, folder: Path) -> Etcd:
    """Starts etcd with its data in a folder and waits until it answers."""
    client_port, peer_port = free_ports(2)
    url, peer_url = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    process = Process(
        [
            program,
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--unsafe-no-fsync=true",
            "--log-level=warn",
        ],
        folder / "etcd.log",
    )
    process.wait_until(lambda: answers_ok(f"{url}/health"))
    return Etcd(url, process)
