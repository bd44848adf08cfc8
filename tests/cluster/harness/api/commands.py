"""kubectl and helm as a person runs them, against one cluster."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.harness.programs.process import Process
from tests.cluster.harness.programs.tools import Say, program


class CommandError(Exception):
    """A command failed; the message is everything it wrote."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program with the cluster it talks to and folders of its own for what it caches."""

    program: Path
    kubeconfig: Path
    folder: Path

    def __call__(self, *arguments: str | Path, stdin: str = "") -> str:
        """Runs it and returns what it wrote to standard output.

        Raises:
            CommandError: It ended with anything but 0.
        """
        done = subprocess.run(  # noqa: S603 - our own command
            [self.program, *arguments],
            input=stdin,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            listed = " ".join(map(str, arguments))
            raise CommandError(f"{self.program.name} {listed}\n{done.stdout}{done.stderr}")
        return done.stdout

    def start(self, log: Path, *arguments: str | Path) -> Process:
        """Starts it, and has it write to a file."""
        return Process([self.program, *arguments], log, env=self._environment())

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.folder / "kubectl"),
            **{f"HELM_{name}_HOME": str(self.folder / "helm") for name in ("CACHE", "CONFIG", "DATA")},
        }

    def json(self, *arguments: str | Path) -> dict[str, Any]:
        """The same with `--output json`, parsed."""
        parsed: dict[str, Any] = json.loads(self(*arguments, "--output", "json"))
        return parsed


def command(name: str, kubeconfig: Path, folder: Path, say: Say) -> Command:
    """A program of `tools.MODULES` for the cluster of a kubeconfig."""
    return Command(program(name, say), kubeconfig, folder)
