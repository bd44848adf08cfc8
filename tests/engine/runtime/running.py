"""`kvtier` as a process, as a person runs it."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.engine.runtime.endings import SHM, TIMEOUT_S, Watched

from kvtier_operator.runtime.guard import descendants, used_files

KVTIER = str(Path(sys.executable).with_name("kvtier"))


def kvtier(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of kvtier to its end."""
    return subprocess.run([KVTIER, *arguments], check=False, capture_output=True, text=True)  # noqa: S603 - our own


class KvtierRun:
    """A `kvtier run` and everything below it."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        self._arguments = arguments
        self.output: list[str] = []

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(  # noqa: S603 - our own
            [KVTIER, *self._arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate()

    def wait_ready(self) -> None:
        """Read what it says until it is ready."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line)
            if line.startswith("ready"):
                return
        raise AssertionError("it ended before it was ready:\n" + "".join(self.output))

    def everything(self) -> tuple[Watched, list[Path]]:
        """All processes below it, and their files in /dev/shm."""
        pids = descendants(self.process.pid)
        names = set().union(*(used_files(pid, SHM) for pid in pids))
        return Watched(pids), [SHM / name for name in sorted(names) if (SHM / name).exists()]

    def finish(self) -> tuple[int, str]:
        """Its exit status and all it said, once it has ended."""
        rest, _ = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, "".join(self.output) + rest
