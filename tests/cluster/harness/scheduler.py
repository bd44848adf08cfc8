"""kube-scheduler."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.harness.healthz import answers_ok
from tests.cluster.harness.ports import free_ports
from tests.cluster.harness.process import Process

if TYPE_CHECKING:
    from tests.cluster.harness.control_plane import ControlPlane


def start_scheduler(program: Path, control_plane: "ControlPlane") -> Process:
    """Starts it with a rate that a test of a thousand resources needs, and waits until it is healthy."""
    (port,) = free_ports(1)
    kubeconfig = control_plane.kubeconfig_for_user("system:kube-scheduler")
    certificates = control_plane.certificates
    process = Process(
        [
            program,
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={certificates.server.certificate}",
            f"--tls-private-key-file={certificates.server.key}",
            "--leader-elect=false",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
        ],
        control_plane.folder / "kube-scheduler.log",
    )
    process.wait_until(lambda: answers_ok(f"https://127.0.0.1:{port}/healthz", certificates.authority.file))
    return process
