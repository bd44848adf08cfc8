"""Namespaces that a node runs in: when their first process ends, the kernel ends and unmounts the rest.

Nothing that a node starts, mounts or filters with iptables is seen by this machine, and nothing can be left
behind: the kernel kills every process of a PID namespace with its first one, and takes mounts, links and
chains away with the last process. So a killed test run cleans up as well as one that ends by itself.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.harness.node import sandbox_init
from tests.cluster.harness.programs.process import Process


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Running namespaces: network, mounts and processes.

    Attributes:
        pid: Their first process, as this machine numbers it.
        folder: For files; the same path inside and outside.
    """

    pid: int
    folder: Path

    def command(self, *command: str | Path) -> list[str]:
        """A command line that runs a command inside, and ends it when what waits for it is killed."""
        inside = ["nsenter", "--target", str(self.pid), "--net", "--mount", "--pid", "--"]
        return [*inside, "setpriv", "--pdeathsig", "KILL", "--", *(str(each) for each in command)]

    def start(self, name: str, *command: str | Path) -> Process:
        """Starts a program inside, with its log in the folder."""
        return Process(self.command(*command), self.folder / f"{name}.log")

    @staticmethod
    def end(process: Process) -> None:
        """Asks a program that was started inside to end, and waits until it has."""
        os.kill(_only_child(process.pid), signal.SIGTERM)
        process.wait()

    def run(self, *command: str | Path) -> str:
        """Runs a command inside and returns what it printed.

        Raises:
            RuntimeError: It failed; the message has what it said.
        """
        done = subprocess.run(  # noqa: S603 - our own command
            self.command(*command), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout


@contextmanager
def running_sandbox(folder: Path) -> Iterator[Sandbox]:
    """New namespaces; with the context everything in them ends."""
    own = ("--net", "--mount", "--pid", "--mount-proc", "--propagation", "private")
    process = Process(
        ["unshare", *own, "--fork", "--kill-child=KILL", sys.executable, sandbox_init.__file__, folder],
        folder / "sandbox.log",
    )
    try:
        process.wait_until((folder / sandbox_init.READY).exists)
        first = _only_child(process.pid)
    except BaseException:
        process.kill()
        raise
    try:
        yield Sandbox(first, folder)
    finally:
        # The first process is reaped only when all the others are gone.
        os.kill(first, signal.SIGKILL)
        process.stop()


def _only_child(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)
