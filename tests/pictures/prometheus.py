"""A Prometheus that scrapes processes of this machine under the names that they have on a cluster."""

import json
import math
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml
from tests.pictures.drawing.panel import Line
from tests.pictures.programs import program
from tests.shared.waiting import eventually

from kvtier_operator.runtime.process import LOOPBACK, free_ports

_WINDOW: Final = "20s"
"""In place of Grafana's: twenty scrapes."""
_STEP_S: Final = 3


@dataclass(frozen=True, slots=True)
class Target:
    """What is scraped.

    Attributes:
        job: As ServiceMonitors name it.
        pod: Its name.
        address: Host and port.
    """

    job: str
    pod: str
    address: str


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One that runs.

    Attributes:
        url: Where it answers.
    """

    url: str

    def lines(self, model: Mapping[str, Any], begin_s: float, end_s: float) -> dict[int, list[Line]]:
        """Series of every panel of a dashboard, by the panel's number."""
        return {
            panel["id"]: [
                line
                for target in panel["targets"]
                for line in self._lines(target["expr"], target["legendFormat"], begin_s, end_s)
            ]
            for panel in model["panels"]
        }

    def _lines(self, expression: str, legend: str, begin_s: float, end_s: float) -> Iterator[Line]:
        query = expression.replace("$__rate_interval", _WINDOW).replace("$__range", f"{end_s - begin_s:.0f}s")
        asked = urlencode({"query": query, "start": begin_s, "end": end_s, "step": _STEP_S})
        for series in self._get(f"/api/v1/query_range?{asked}")["data"]["result"]:
            named = _named(legend, series["metric"])
            points = ((at - begin_s, float(value)) for at, value in series["values"])
            yield Line(named, tuple(point for point in points if math.isfinite(point[1])))

    def ready(self) -> bool:
        """Whether it answers yet."""
        try:
            with urlopen(f"{self.url}/-/ready", timeout=5):  # noqa: S310 - our own address
                return True
        except URLError:
            return False

    def _get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        with urlopen(self.url + path, timeout=30) as answer:  # noqa: S310 - our own address
            return json.load(answer)


@contextmanager
def prometheus(targets: Sequence[Target], namespace: str, folder: Path) -> Iterator[Prometheus]:
    """Scrapes once a second until the context ends.

    Args:
        targets: What to scrape.
        namespace: Of all of them.
        folder: An empty one, for its data.
    """
    [port] = free_ports(1, LOOPBACK)
    config = folder / "prometheus.yaml"
    config.write_text(yaml.safe_dump(_config(targets, namespace)), encoding="utf-8")
    running = subprocess.Popen(  # noqa: S603 - our own configuration
        [
            program("prometheus"),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={LOOPBACK}:{port}",
            "--log.level=warn",
        ]
    )
    try:
        found = Prometheus(f"http://{LOOPBACK}:{port}")
        eventually(found.ready, "answer of Prometheus")
        yield found
    finally:
        running.terminate()
        running.wait()


def _named(legend: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda label: labels.get(label[1], ""), legend)


def _config(targets: Sequence[Target], namespace: str) -> dict[str, Any]:
    jobs = sorted({target.job for target in targets})
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {
                "job_name": job,
                "static_configs": [
                    {"targets": [target.address], "labels": {"namespace": namespace, "pod": target.pod}}
                    for target in targets
                    if target.job == job
                ],
            }
            for job in jobs
        ],
    }
