"""A KVCacheTier served by `kvtier run`, as its Services would name it to a Prometheus."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

import click
from tests.pictures.prometheus import Target
from tests.shared.waiting import eventually

from kvtier_operator.planning.base.names import Names
from kvtier_operator.runtime.process import LOOPBACK, free_ports

_KVTIER: Final = str(Path(sys.executable).with_name("kvtier"))
_STARTUP_S: Final = 300.0
_LOAD: Final = (
    *("--num-groups", "12", "--prompts-per-group", "3", "--system-prompt-len", "600"),
    *("--question-len", "32", "--output-len", "8", "--concurrency", "3"),
)
_ROUNDS_OF_A_SEED: Final = 2
"""The second time, every prompt's beginning is in some tier."""


@dataclass(frozen=True, slots=True)
class Served:
    """Engines and their picker.

    Attributes:
        url: Where they are asked.
        targets: Where they tell of themselves.
    """

    url: str
    targets: tuple[Target, ...]

    def ask(self, until_s: float) -> None:
        """Questions about shared system prompts, again and again, until the clock says so."""
        for number in count():
            if time.time() > until_s:
                return
            seed = str(number // _ROUNDS_OF_A_SEED)
            asked = [_KVTIER, "bench", "shared-prefix", "--url", self.url, *_LOAD, "--seed", seed]
            subprocess.run(asked, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command


@contextmanager
def serve(resource: Path, model: Path, names: Names, folder: Path) -> Iterator[Served]:
    """Runs until the context ends.

    Args:
        resource: A KVCacheTier with two replicas or more.
        model: Folder of its model.
        names: What its objects are called.
        folder: For logs.

    Raises:
        ClickException: It ended before it was ready.
    """
    [port] = free_ports(1, LOOPBACK)
    log = folder / "run.log"
    options = ["--model", str(model), "--port", str(port), "--log-dir", str(folder / "logs")]
    with log.open("w", encoding="utf-8") as said:
        running = subprocess.Popen(  # noqa: S603 - our own command
            [_KVTIER, "run", "-f", str(resource), *options], stdout=said, stderr=subprocess.STDOUT
        )
    try:
        text = eventually(lambda: _said_when_ready(running, log), "line `ready`", _STARTUP_S)
        yield Served(f"http://{LOOPBACK}:{port}", tuple(_targets(text, names)))
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()


def _said_when_ready(running: "subprocess.Popen[bytes]", log: Path) -> str:
    text = log.read_text(encoding="utf-8")
    if running.poll() is not None:
        raise click.ClickException(f"kvtier run ended before it was ready: {text[-800:]}")
    return text if re.search(r"^ready", text, re.MULTILINE) else ""


def _targets(text: str, names: Names) -> Iterator[Target]:
    for pod, address in re.findall(r"^(engine-\d+) is ready at http://(\S+)$", text, re.MULTILINE):
        yield Target(names.engine, pod, address)
    for address in re.findall(r"^picker: counts at http://([^/]+)/metrics", text, re.MULTILINE):
        yield Target(names.picker, "picker-0", address)
