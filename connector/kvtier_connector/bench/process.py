"""Ctrl-C and SIGTERM while a child is being started: they wait until it can be ended as well."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final, TextIO

import psutil

from kvtier_connector.errors import ConnectorError

_ENDINGS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held_signals() -> Iterator[None]:
    """What comes while the context lasts is handled when it ends; other threads have no signals to hold.

    Between a child's start and the line that sees to its end, a handler's exception would leave it running.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        del frame
        came.append(number)

    def hand_on() -> None:
        if came:
            signal.raise_signal(came[0])

    with ExitStack() as stack:
        # last of all: then the handlers are back, each of them, whatever one of them raises
        stack.callback(hand_on)
        for number in _ENDINGS:
            stack.callback(signal.signal, number, signal.getsignal(number))
            signal.signal(number, hold)
        yield


_LOG_LINES: Final = 15
_LAST_LINES_S: Final = 10.0
_LOOK_S: Final = 0.05
_CHILDREN_TIMEOUT_S: Final = 20.0


class LineProcess:
    """The caller's end of such a process.

    Args:
        process: reads the questions.
        answers: what it answers.
        log: what else it prints.
        name: for people.
    """

    def __init__(self, process: "subprocess.Popen[str]", answers: TextIO, log: Path, name: str) -> None:
        self.pid = process.pid
        self._process = process
        self._answers = answers
        self._log = log
        self._name = name

    def answer(self) -> Any:  # noqa: ANN401 - JSON
        """Wait for the next answer, of which the first says that the process is ready.

        Raises:
            ConnectorError: it died; the message ends with its last lines.
        """
        line = self._answers.readline()
        if not line:
            with suppress(subprocess.TimeoutExpired):  # the pipe closes before the last lines are written
                self._process.wait(_LAST_LINES_S)
            last = self._log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
            raise ConnectorError(f"{self._name} died: " + "\n".join(last))
        return json.loads(line)

    def exchange(self, question: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """Ask, and wait for the answer.

        Raises:
            ConnectorError: as of `answer`.
        """
        if self._process.stdin:
            with suppress(BrokenPipeError):  # it died, which `answer` tells of
                self._process.stdin.write(json.dumps(question) + "\n")
                self._process.stdin.flush()
        return self.answer()


@contextmanager
def line_process(
    module: str,
    *arguments: str,
    name: str,
    log: Path,
    environment: Mapping[str, str],
    patience_s: float | None = None,
) -> Iterator[LineProcess]:
    """Start a process and end it.

    Args:
        module: what it runs; that calls `serve` with its first argument, the pipe for its answers.
        arguments: its further arguments.
        name: for people.
        log: file that takes its output.
        environment: all of its variables.
        patience_s: that it has to end; it is killed then. None for as long as it takes.
    """
    reader, writer = os.pipe()
    log.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(reader) as answers, log.open("w") as output, ExitStack() as stack:
        with held_signals():
            process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-m", module, str(writer), *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                pass_fds=[writer],
                env=dict(environment),
            )
            stack.callback(end, process, patience_s)
        os.close(writer)
        yield LineProcess(process, answers, log, name)


def serve(answers: int, handle: Callable[[Any], Any], ready: object = None) -> None:
    """Answer the lines of the standard input until it ends; what such a process does.

    Args:
        answers: the pipe for its answers.
        handle: makes an answer of a question.
        ready: the first answer.
    """
    with os.fdopen(answers, "w", buffering=1) as pipe:
        pipe.write(json.dumps(ready) + "\n")
        for line in sys.stdin:
            pipe.write(json.dumps(handle(json.loads(line))) + "\n")


def end(process: "subprocess.Popen[str]", patience_s: float | None = None) -> None:
    """Have it end, and wait for its children, which may have a GPU's memory for a moment longer."""
    family = children_of(process.pid)
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    until = time.monotonic() + _CHILDREN_TIMEOUT_S
    while any(map(runs, family)) and time.monotonic() < until:
        time.sleep(_LOOK_S)


def children_of(pid: int) -> list[psutil.Process]:
    """Return a process's children and theirs; none once it has ended."""
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def runs(process: psutil.Process) -> bool:
    """Tell whether a process has not ended."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
