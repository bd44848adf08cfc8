"""kvtier's own picker as a process of this test run."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process
from tests.picker.harness.descriptors import with_files
from tests.picker.harness.health import is_serving
from tests.picker.harness.pool import Pool

from kvtier_operator.api.spec.router import Flavor


@dataclass(frozen=True, slots=True)
class OwnStart:
    """How the picker is started.

    Attributes:
        config: The EndpointPickerConfig as text.
        scrape_interval_s: Between two looks at a pod's metrics.
        tls: Whether it speaks TLS, with a certificate of its own.
        arguments: Further arguments of its command.
        environment: Beside this process's own.
        files: Descriptors that it may have; 0 for as many as this process.
        port: Of its ext_proc service; 0 for one that is free.
    """

    config: str
    scrape_interval_s: float = 0.05
    tls: bool = False
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: int = 0
    port: int = 0


@dataclass(frozen=True, slots=True)
class Own:
    """A running picker that is ready.

    Attributes:
        process: It.
        port: Of its ext_proc service.
        health_port: Of its health service.
        metrics_port: Of its metrics.
        explain_port: Of its explanations.
    """

    process: Process
    port: int
    health_port: int
    metrics_port: int
    explain_port: int

    @property
    def address(self) -> tuple[str, int]:
        """Where Envoy reaches it."""
        return "127.0.0.1", self.port

    @property
    def http(self) -> str:
        """Base URL of its metrics."""
        return f"http://127.0.0.1:{self.metrics_port}"

    @property
    def explain(self) -> str:
        """Base URL of its explanations."""
        return f"http://127.0.0.1:{self.explain_port}/explain"


@contextmanager
def running_own(start: OwnStart, pods: Sequence[tuple[str, int]] | Pool, folder: Path) -> Iterator[Own]:
    """Starts the picker and waits until its health service says that it serves.

    Args:
        start: What to start.
        pods: Address and port of each pod, or the InferencePool that has them.
        folder: For its configuration and its log.

    Raises:
        RuntimeError: It ended, or it is not ready in time; the message has the end of its log.
    """
    port, health, metrics, explain = free_ports(4)
    port = start.port or port
    config = folder / "picker.yaml"
    config.write_text(
        f"{start.config}\nmetrics: {{scrapeIntervalMs: {round(start.scrape_interval_s * 1000)}}}\n"
    )
    environment = {**os.environ, **start.environment}
    if isinstance(pods, Pool):
        source = [f"--pool-name={pods.name}", f"--pool-namespace={pods.name}"]
        environment["KUBECONFIG"] = str(pods.pickers[Flavor.BUILTIN].kubeconfig(folder))
    else:
        source = [f"--endpoints={','.join(f'{ip}:{serving}' for ip, serving in pods)}"]
    command = [
        sys.executable,
        "-m",
        "kvtier_scorer.picker",
        f"--config-file={config}",
        *source,
        "--bind-address=127.0.0.1",
        f"--grpc-port={port}",
        f"--grpc-health-port={health}",
        f"--metrics-port={metrics}",
        f"--explain-address=127.0.0.1:{explain}",
        f"--secure-serving={start.tls}",
        "--log-format=plain",
        *start.arguments,
    ]
    log = folder / "picker.log"
    process = Process(with_files(command, start.files), log, env=environment)
    picker = Own(process, port, health, metrics, explain)
    try:
        process.wait_until(lambda: is_serving(f"127.0.0.1:{health}"))
        yield picker
    finally:
        process.stop()
