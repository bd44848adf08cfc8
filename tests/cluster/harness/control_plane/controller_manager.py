"""kube-controller-manager: Deployments get pods, Services endpoints, and orphans are collected."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.harness.control_plane.controller import start_controller
from tests.cluster.harness.programs.process import Process

if TYPE_CHECKING:
    from tests.cluster.harness.control_plane.control_plane import ControlPlane


def start_controller_manager(program: Path, control_plane: "ControlPlane") -> Process:
    """Starts it and waits until it is healthy."""
    certificates = control_plane.certificates
    options = (
        f"--root-ca-file={certificates.authority.file}",
        f"--service-account-private-key-file={certificates.service_account_key}",
        "--use-service-account-credentials=true",
        "--concurrent-deployment-syncs=20",
        "--concurrent-replicaset-syncs=20",
        "--concurrent-gc-syncs=40",
    )
    return start_controller(program, control_plane, "kube-controller-manager", options)
