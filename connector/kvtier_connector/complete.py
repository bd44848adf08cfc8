"""Whether all is installed that the connector needs beside vLLM: `python -m kvtier_connector.complete`.

vLLM loads the connector in the engine's process, whose end its log explains in a hundred lines. What is
missing is said in one, in the log and as the container's termination message, which Kubernetes and so the
resource's condition show.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

from kvtier_connector.errors import ConnectorError, UnsupportedEngineError

NEEDED: Final = ("numba", "numpy", "xxhash")
"""Modules of what `kvtier[connector]` requires in pyproject.toml, without those that it can do without."""
OPTIONAL: Final = ("liburing",)
"""Without it a disk is read and written by threads (core/disk/io); it has wheels for x86-64 only."""
_TERMINATION_LOG: Final = Path("/dev/termination-log")


def missing_packages_text() -> str:
    """One line that says what is missing and what to do; empty if nothing is."""
    lacking = [name for name in NEEDED if find_spec(name) is None]
    if not lacking:
        return ""
    return (
        f"kvtier's connector needs {' and '.join(lacking)}, which {sys.executable} does not have: use "
        'vLLM\'s own image with that of kvtier/connector, or pip install "kvtier[connector]"'
    )


def require_all() -> None:
    """Refuse to be loaded where something is missing.

    Raises UnsupportedEngineError: it is; the line is the container's termination message, too.
    """
    if line := missing_packages_text():
        refuse(UnsupportedEngineError(line))


def refuse(error: ConnectorError) -> NoReturn:
    """Raise an error, which ends a container's life, and leave its line where Kubernetes looks."""
    with suppress(OSError):  # none outside a container
        flags = os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(_TERMINATION_LOG, flags), "w") as log:
            log.write(f"{error}\n")
    raise error


@contextmanager
def refusals() -> Iterator[None]:
    """Have what is refused within end the container's life as `refuse` does."""
    try:
        yield
    except ConnectorError as error:
        refuse(error)


if __name__ == "__main__":
    sys.exit(missing_packages_text() or 0)
