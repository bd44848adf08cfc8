"""A command with a bound on its open files, from its first instruction on."""

from collections.abc import Sequence
from typing import Final

_LIMITED: Final = 'ulimit -n "$0" && exec "$@"'
"""The shell's own: sets what is asked for and what may be asked for."""


def with_files(command: Sequence[str], files: int) -> list[str]:
    """The command, with so many descriptors at most.

    Args:
        command: What is run.
        files: 0 for as many as the caller has.
    """
    return ["sh", "-c", _LIMITED, str(files), *command] if files else list(command)
