"""The benchmark's end of a side that lives in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from kvtier_connector.bench.disk.work import Op, Sample, Work
from kvtier_connector.bench.held_signals import held_signals
from kvtier_connector.errors import ConnectorError

_LOG_LINES: Final = 15
_END_TIMEOUT_S: Final = 30.0


class SideProcess:
    """Starts a side and asks it for samples.

    Args:
        name: of the side.
        work: what it is to do.
        log: file for its output.
        environment: variables beside this process's own.
        stack: ends it.
    """

    def __init__(
        self, name: str, work: Work, *, log: Path, environment: Mapping[str, str], stack: ExitStack
    ) -> None:
        self.name = name
        self._log = log
        Path(work.folder).mkdir(parents=True)
        reader, writer = os.pipe()
        self._answers = os.fdopen(reader)
        command = [sys.executable, "-m", "kvtier_connector.bench.disk.sides", name, json.dumps(asdict(work))]
        with log.open("w") as output, held_signals():
            self._process = subprocess.Popen(  # noqa: S603 - ourselves
                [*command, str(writer)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(writer,),
                env={**os.environ, **environment},
                text=True,
            )
            stack.callback(self._end)
        os.close(writer)
        self.variants: tuple[str, ...] = ()

    def ready(self) -> None:
        """Wait until it has stored all its blocks.

        Raises:
            ConnectorError: it died; the message ends with its last lines.
        """
        self.variants = tuple(self._answer()["variants"])

    def sample(self, op: Op, variant: str, seed: int) -> Sample:
        """Take one sample.

        Raises:
            ConnectorError: it died, for instance of wrong bytes.
        """
        if self._process.stdin:
            self._process.stdin.write(json.dumps({"op": op, "variant": variant, "seed": seed}) + "\n")
            self._process.stdin.flush()
        return Sample(**self._answer())

    def _end(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            last = self._log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
            raise ConnectorError(f"the disk benchmark's side {self.name} died: " + "\n".join(last))
        answer: dict[str, Any] = json.loads(line)
        return answer
