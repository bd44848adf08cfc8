"""A cluster without nodes: what runs behind the API server runs too."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from kubernetes import client
from tests.cluster.harness.control_plane import control_plane as control_planes
from tests.cluster.harness.control_plane.apiserver import Addresses
from tests.cluster.harness.control_plane.control_plane import ControlPlane, running_control_plane
from tests.cluster.harness.control_plane.controller_manager import start_controller_manager
from tests.cluster.harness.control_plane.scheduler import start_scheduler
from tests.cluster.harness.programs.tools import Say, programs
from tests.shared.waiting import eventually

PROGRAMS: Final = (*control_planes.PROGRAMS, "kube-controller-manager", "kube-scheduler")


@contextmanager
def running_cluster(
    say: Say, addresses: Addresses | None = None, within: Path | None = None
) -> Iterator[ControlPlane]:
    """etcd, API server, controller manager and scheduler, ready for objects; all gone afterwards."""
    built = programs(PROGRAMS, say)
    with running_control_plane(say, addresses, within) as control_plane, ExitStack() as stack:
        for start, name in (
            (start_controller_manager, "kube-controller-manager"),
            (start_scheduler, "kube-scheduler"),
        ):
            stack.callback(start(built[name], control_plane).stop)
        with control_plane.client() as api:
            eventually(lambda: _accepts_pods(api), "the service account of the namespace `default`")
        yield control_plane


def _accepts_pods(api: client.ApiClient) -> bool:
    """Whether pods can be made: admission wants the service account that a controller makes."""
    accounts = client.CoreV1Api(api).list_namespaced_service_account("default").items
    return any(account.metadata.name == "default" for account in accounts)
