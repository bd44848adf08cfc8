"""The operator as a process with the rights of the service account that was installed for it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.healthz import answers_ok
from tests.cluster.harness.ports import free_ports
from tests.cluster.harness.process import Process
from tests.cluster.install.places import OPERATOR, SYSTEM


@contextmanager
def running_operator(
    site: ControlPlane, folder: Path, *, namespaces: str = "", sources: Path | None = None
) -> Iterator[Path]:
    """Starts it and waits until it is healthy; yields its log.

    Args:
        site: The cluster, in which chart or manifests are installed.
        folder: For its kubeconfig and log.
        namespaces: As KVTIER_NAMESPACES.
        sources: A checkout whose operator to run; this one's when empty.
    """
    metrics, health = free_ports(2)
    kubeconfig = site.kubeconfig_for_service_account(SYSTEM, OPERATOR, folder)
    environment = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "KVTIER_NAMESPACES": namespaces,
        "KVTIER_METRICS_PORT": str(metrics),
        "KVTIER_HEALTH_PORT": str(health),
    }
    if sources:
        packages = (sources / part for part in ("operator", "connector", "scorer"))
        environment["PYTHONPATH"] = os.pathsep.join(map(str, packages))
    log = folder / "operator.log"
    process = Process([sys.executable, "-m", "kvtier_operator.reconcile"], log, env=environment)
    try:
        process.wait_until(lambda: answers_ok(f"http://127.0.0.1:{health}/healthz"))
        yield log
    finally:
        process.stop()
