"""The Gateway API Inference Extension's own picker, any version that the tests build."""

import os
import re
import socket
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process
from tests.cluster.harness.programs.tools import Say, program
from tests.picker.harness.health import is_serving
from tests.picker.harness.pool import Pool

from kvtier_operator.api.spec.router import Flavor

PROGRAMS: Final[Mapping[str, str]] = {"1.4": "epp-1.4", "1.5": "epp"}
"""Minor version to the program of `tools.MODULES`."""

_POD_LINE: Final = re.compile(rb"^inference_pool_per_pod_queue_size\{", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Gaie:
    """A running picker that is ready.

    Attributes:
        process: It.
        port: Of its ext_proc service.
        metrics_port: Of its Prometheus metrics.
    """

    process: Process
    port: int
    metrics_port: int

    @property
    def address(self) -> tuple[str, int]:
        """Where Envoy reaches it."""
        return "127.0.0.1", self.port

    def metrics(self) -> bytes:
        """Its Prometheus metrics."""
        return _get(f"http://127.0.0.1:{self.metrics_port}/metrics")

    def pods(self) -> int:
        """How many pods it knows."""
        return len(_POD_LINE.findall(self.metrics()))


@dataclass(frozen=True, slots=True)
class Start:
    """How a picker is started.

    Attributes:
        version: A key of `PROGRAMS`.
        config: The EndpointPickerConfig as text.
        scrape_interval_s: Between two looks at a pod's metrics.
        tls: Whether it serves TLS, with a certificate of its own making.
        verbosity: Of its log.
        prefix: A command that starts it, such as `taskset`.
        environment: Beside this process's own.
    """

    version: str
    config: str
    scrape_interval_s: float = 0.05
    tls: bool = False
    verbosity: int = 1
    prefix: Sequence[str] = ()
    environment: Mapping[str, str] | None = None


@contextmanager
def running_gaie(start: Start, pool: Pool, pods: int, folder: Path, say: Say) -> Iterator[Gaie]:
    """Starts a picker and waits until it is healthy and knows the pods.

    Args:
        start: What to start.
        pool: Its InferencePool.
        pods: How many pods it must know before it is taken for ready.
        folder: For its configuration and its log.
        say: Takes lines about a build.

    Raises:
        RuntimeError: It ended, or it is not ready in time; the message has the end of its log.
    """
    grpc_port, health_port, metrics_port = free_ports(3)
    config = folder / "picker.yaml"
    config.write_text(start.config)
    process = Process(
        [
            *start.prefix,
            program(PROGRAMS[start.version], say),
            f"--pool-name={pool.name}",
            f"--pool-namespace={pool.name}",
            f"--config-file={config}",
            f"--grpc-port={grpc_port}",
            f"--grpc-health-port={health_port}",
            f"--metrics-port={metrics_port}",
            "--metrics-endpoint-auth=false",
            f"--secure-serving={str(start.tls).lower()}",
            f"--refresh-metrics-interval={start.scrape_interval_s:g}s",
            "--tracing=false",
            f"--v={start.verbosity}",
        ],
        folder / "picker.log",
        env={
            **os.environ,
            **(start.environment or {}),
            "KUBECONFIG": str(pool.pickers[Flavor.GAIE].kubeconfig(folder)),
        },
    )
    picker = Gaie(process, grpc_port, metrics_port)
    try:
        process.wait_until(lambda: is_serving(f"127.0.0.1:{health_port}") and picker.pods() == pods)
        # with TLS it first makes a key of 4,096 bits, and says that it serves before that is done
        process.wait_until(lambda: listens(picker.address))
        yield picker
    finally:
        process.stop()


def listens(address: tuple[str, int]) -> bool:
    """Whether anybody takes connections there."""
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return False
    return True


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own server
        content: bytes = answer.read()
        return content
