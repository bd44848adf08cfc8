"""kube-scheduler."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.harness.control_plane.controller import start_controller
from tests.cluster.harness.programs.process import Process

if TYPE_CHECKING:
    from tests.cluster.harness.control_plane.control_plane import ControlPlane


def start_scheduler(program: Path, control_plane: "ControlPlane") -> Process:
    """Starts it and waits until it is healthy."""
    return start_controller(program, control_plane, "kube-scheduler")
