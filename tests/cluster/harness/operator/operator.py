"""The operator as a process of its own, as in its pod but for the container."""

import os
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from tests.cluster.harness.programs.healthz import answers_ok
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Operator:
    """A running operator.

    Attributes:
        process: Its process and log.
        metrics_url: Its Prometheus metrics.
        health_url: Whether it is alive.
        ready_url: Whether it serves.
    """

    process: Process
    metrics_url: str
    health_url: str
    ready_url: str

    def metrics(self) -> dict[str, float]:
        """Its metrics by name, all labels added up."""
        totals: dict[str, float] = {}
        for sample in self._samples():
            totals[sample.name] = totals.get(sample.name, 0.0) + sample.value
        return totals

    def writes(self, kind: str = "") -> int:
        """Writes sent to the API server so far, of objects of a kind or of all; a status is its object's."""
        written = (sample for sample in self._samples() if sample.name == "kvtier_api_writes_total")
        return int(sum(each.value for each in written if kind in ("", each.labels["kind"])))

    def _samples(self) -> list[Sample]:
        with urllib.request.urlopen(self.metrics_url, timeout=10) as answer:  # noqa: S310 - loopback
            text = answer.read().decode()
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def resident_bytes(self) -> int:
        """Its resident memory now."""
        return self._memory("VmRSS")

    def peak_bytes(self) -> int:
        """The most that it ever had."""
        return self._memory("VmHWM")

    def _memory(self, what: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        (line,) = (line for line in status.splitlines() if line.startswith(f"{what}:"))
        return int(line.split()[1]) * _KIB

    def stop(self) -> None:
        """Ends it as Kubernetes ends a pod."""
        self.process.stop()

    def kill(self) -> None:
        """Ends it as a node's failure does."""
        self.process.kill()


def start_operator(
    kubeconfig: Path, log: Path, *, namespaces: tuple[str, ...] = (), env: Mapping[str, str] | None = None
) -> Operator:
    """Starts an operator and waits until it answers.

    Args:
        kubeconfig: Its rights.
        log: Its output.
        namespaces: What it serves; none for all.
        env: More environment.
    """
    metrics_port, health_port = free_ports(2)
    options = [f"--namespace={namespace}" for namespace in namespaces]
    process = Process(
        [
            sys.executable,
            "-m",
            "kvtier_operator.reconcile",
            f"--metrics-port={metrics_port}",
            f"--health-port={health_port}",
            *options,
        ],
        log,
        # kubernetes writes the kubeconfig's key into a temporary file, which stays if the operator is killed.
        env=os.environ | {"KUBECONFIG": str(kubeconfig), "TMPDIR": str(log.parent)} | dict(env or {}),
    )
    health = f"http://127.0.0.1:{health_port}"
    operator = Operator(
        process, f"http://127.0.0.1:{metrics_port}/metrics", f"{health}/healthz", f"{health}/readyz"
    )
    process.wait_until(lambda: answers_ok(operator.health_url))
    return operator


@contextmanager
def running_operator(
    kubeconfig: Path, log: Path, *, namespaces: tuple[str, ...] = (), env: Mapping[str, str] | None = None
) -> Iterator[Operator]:
    """As `start_operator`; ended afterwards."""
    operator = start_operator(kubeconfig, log, namespaces=namespaces, env=env)
    try:
        yield operator
    finally:
        operator.stop()
