"""A real registry of images and charts (the CNCF's distribution), on loopback and so without TLS."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.harness.node.sandbox import Sandbox
from tests.cluster.harness.programs.healthz import answers_ok
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process
from tests.cluster.harness.programs.tools import Say, program


@dataclass(frozen=True, slots=True)
class Registry:
    """One that runs.

    Attributes:
        port: On loopback.
        program: It.
        configuration: Its file.
    """

    port: int
    program: Path
    configuration: Path

    @property
    def name(self) -> str:
        """As references begin with it."""
        return f"localhost:{self.port}"

    def start_in(self, sandbox: Sandbox) -> Process:
        """Starts another one that has the same content on a node's own loopback."""
        process = sandbox.start("registry", self.program, "serve", self.configuration)
        process.wait_until_log(f"listening on 127.0.0.1:{self.port}")
        return process


@contextmanager
def running_registry(folder: Path, say: Say) -> Iterator[Registry]:
    """An empty one; it ends with the context, and its content stays in the folder."""
    [port] = free_ports(1)
    configuration = folder / "registry.yaml"
    configuration.write_text(json.dumps(_configuration(folder / "content", port)))  # JSON is YAML
    registry = Registry(port, program("registry", say), configuration)
    # its variables would change the configuration
    own = {name: value for name, value in os.environ.items() if not name.startswith(("REGISTRY_", "OTEL_"))}
    process = Process(
        [registry.program, "serve", configuration],
        folder / "registry.log",
        env=own | {"OTEL_TRACES_EXPORTER": "none"},
    )
    process.wait_until(lambda: answers_ok(f"http://127.0.0.1:{port}/v2/"))
    try:
        yield registry
    finally:
        process.stop()


def _configuration(content: Path, port: int) -> dict[str, Any]:
    return {
        "version": 0.1,
        "log": {"level": "info"},
        "storage": {"filesystem": {"rootdirectory": str(content)}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }
