"""A bash in which a person types one command after the other."""

import secrets
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PATIENCE_S: Final = 300.0


class Shell:
    """It keeps its folder, variables and functions from command to command."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def type(self, command: str) -> tuple[int, str]:
        """The status of a command, and what the terminal shows of it.

        Raises:
            AssertionError: It does not end, or ends the shell.
        """
        assert self._process.stdin
        assert self._process.stdout
        end = f"end-{secrets.token_hex(8)}"
        # A command that reads its input must not be given the next one.
        self._process.stdin.write(f"{{ {command}\n}} </dev/null; printf '\\n%s %d\\n' {end} $?\n")
        self._process.stdin.flush()
        impatience = threading.Timer(_PATIENCE_S, self._process.kill)
        impatience.start()
        shown: list[str] = []
        for line in self._process.stdout:
            if line.startswith(f"{end} "):
                impatience.cancel()
                return int(line.split()[1]), "".join(shown).removesuffix("\n")
            shown.append(line)
        raise AssertionError(f"{command}: it does not end, or ends the shell\n{''.join(shown)}")


@contextmanager
def open_shell(folder: Path, variables: Mapping[str, str]) -> Iterator[Shell]:
    """A shell that starts in a folder, with these variables and no others."""
    with subprocess.Popen(
        ["/bin/bash", "--noprofile", "--norc", "-o", "pipefail"],
        cwd=folder,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield Shell(process)
        finally:
            process.kill()
