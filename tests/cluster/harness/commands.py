"""kubectl and helm as a person runs them, against one cluster."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.harness.tools import Say, program


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
        own = {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.folder / "kubectl"),
            **{f"HELM_{each}_HOME": str(self.folder / "helm") for each in ("CACHE", "CONFIG", "DATA")},
        }
        done = subprocess.run(  # noqa: S603 - our own command
            [self.program, *arguments],
            input=stdin,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            listed = " ".join(map(str, arguments))
            raise CommandError(f"{self.program.name} {listed}\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *arguments: str | Path) -> dict[str, Any]:
        """The same with `--output json`, parsed."""
        parsed: dict[str, Any] = json.loads(self(*arguments, "--output", "json"))
        return parsed


def command(name: str, kubeconfig: Path, folder: Path, say: Say) -> Command:
    """A program of `tools.MODULES` for the cluster of a kubeconfig."""
    return Command(program(name, say), kubeconfig, folder)
