"""kube-controller-manager: Deployments get pods, Services endpoints, and orphans are collected."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.harness.healthz import answers_ok
from tests.cluster.harness.ports import free_ports
from tests.cluster.harness.process import Process

if TYPE_CHECKING:
    from tests.cluster.harness.control_plane import ControlPlane


def start_controller_manager(program: Path, control_plane: "ControlPlane") -> Process:
    """Starts it with a rate that a test of a thousand resources needs, and waits until it is healthy."""
    (port,) = free_ports(1)
    kubeconfig = control_plane.kubeconfig_for_user("system:kube-controller-manager")
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
            f"--root-ca-file={certificates.authority.file}",
            f"--service-account-private-key-file={certificates.service_account_key}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            # With its default of 20 requests a second, that rate would be what a test of load measures.
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
            "--concurrent-deployment-syncs=20",
            "--concurrent-replicaset-syncs=20",
            "--concurrent-gc-syncs=40",
        ],
        control_plane.folder / "kube-controller-manager.log",
    )
    process.wait_until(lambda: answers_ok(f"https://127.0.0.1:{port}/healthz", certificates.authority.file))
    return process
