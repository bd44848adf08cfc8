"""The benchmark's end of a side that lives in a process of its own."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.bench.connector.disk.work import Op, Sample, Work

from kvtier_connector.bench.engine import LineProcess, line_process

_PATIENCE_S: Final = 30.0


class SideProcess:
    """A side that has been started.

    Args:
        name: of the side.
        process: where it lives.
    """

    def __init__(self, name: str, process: LineProcess) -> None:
        self.name = name
        self.variants: tuple[str, ...] = ()
        self._process = process

    def ready(self) -> None:
        """Wait until it has stored all its blocks.

        Raises:
            ConnectorError: it died; the message ends with its last lines.
        """
        self.variants = tuple(self._process.answer()["variants"])

    def sample(self, op: Op, variant: str, seed: int) -> Sample:
        """Take one sample.

        Raises:
            ConnectorError: it died, for instance of wrong bytes.
        """
        return Sample(**self._process.exchange({"op": op, "variant": variant, "seed": seed}))


@contextmanager
def side_process(
    name: str, work: Work, *, log: Path, environment: Mapping[str, str]
) -> Iterator[SideProcess]:
    """Start a side and end it.

    Args:
        name: of the side.
        work: what it is to do.
        log: file for its output.
        environment: variables beside this process's own.
    """
    Path(work.folder).mkdir(parents=True)
    with line_process(
        "tests.bench.connector.disk.sides",
        name,
        json.dumps(asdict(work)),
        name=f"the disk benchmark's side {name}",
        log=log,
        environment={**os.environ, **environment},
        patience_s=_PATIENCE_S,
    ) as process:
        yield SideProcess(name, process)
