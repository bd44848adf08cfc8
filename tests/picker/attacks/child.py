"""A part of a stage as a process of its own: told by lines on its standard input, answering in JSON.

A neighbour that shared an interpreter or a loop with the attacker would wait for that one.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tests.picker.harness.descriptors import with_files

_QUIET: Final = {"GRPC_VERBOSITY": "NONE"}
"""What a bare server says of its attackers is no part of the figures."""


class Child:
    """A running part."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def tell(self, line: str) -> None:
        """Tells it to do something."""
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def said(self) -> Any:  # noqa: ANN401 - what JSON holds
        """Its next answer, waited for.

        Raises:
            RuntimeError: It ended instead.
        """
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended with {self._process.wait()}")
        return json.loads(line)


@contextmanager
def running_child(module: str, arguments: Sequence[str], files: int = 0) -> Iterator[Child]:
    """Starts a part and waits until it says that it is there; its standard input's end is its own end."""
    command = with_files([sys.executable, "-m", module, *arguments], files)
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | _QUIET
    ) as process:
        child = Child(process)
        try:
            assert child.said() == "ready"
            yield child
        finally:
            assert process.stdin
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def say(answer: object) -> None:
    """In the part: answers."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
