"""What the control plane's controllers have in common, kube-scheduler included."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.harness.programs.healthz import answers_ok
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process

if TYPE_CHECKING:
    from tests.cluster.harness.control_plane.control_plane import ControlPlane


def start_controller(
    program: Path, control_plane: "ControlPlane", name: str, options: Sequence[str] = ()
) -> Process:
    """Starts one with a rate that a test of a thousand resources needs, and waits until it is healthy.

    Args:
        program: Its binary.
        control_plane: Where it works.
        name: Such as `kube-scheduler`: its user and its log are called so.
        options: What it needs beside what they all need.
    """
    (port,) = free_ports(1)
    kubeconfig = control_plane.kubeconfig_for_user(f"system:{name}")
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
            # With the default of tens of requests a second, that rate would be what a test of load measures.
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
            *options,
        ],
        control_plane.folder / f"{name}.log",
    )
    process.wait_until(lambda: answers_ok(f"https://127.0.0.1:{port}/healthz", certificates.authority.file))
    return process
