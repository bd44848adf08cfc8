"""Whether all is installed that the connector needs beside vLLM: `python -m kvtier_connector.complete`.

vLLM loads the connector in the engine's process, whose end its log explains in a hundred lines. What is
missing is said in one, in the log and as the container's termination message, which Kubernetes and so the
resource's condition show.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

from kvtier_common.one_line import one_line
from kvtier_connector.errors import ConnectorError, UnsupportedEngineError

NEEDED: Final = ("numba", "numpy", "xxhash")
"""Modules of what `kvtier[connector]` requires in pyproject.toml, without those that it can do without."""
_OF_VLLM: Final = frozenset({"numba", "numpy"})
"""Only looked for: vLLM stumbles over numba in a worker for the CPU that has it too early, and ends."""
OPTIONAL: Final = ("liburing",)
"""Without it a disk is read and written by threads (core/disk/io); it has wheels for x86-64 only."""
_MOST_CHARACTERS: Final = 200  # of an error that others wrote
_TERMINATION_LOG: Final = Path("/dev/termination-log")


def missing_packages_text() -> str:
    """One line that says what is missing and what to do; empty if nothing is."""
    lacking = {name: why for name in NEEDED if (why := _why_not_imported(name))}
    if not lacking:
        return ""
    return (
        f"kvtier's connector needs {' and '.join(lacking)}, which {sys.executable} cannot import "
        f"({'; '.join(lacking.values())}): use vLLM's own image with that of kvtier/connector, or "
        'pip install "kvtier[connector]"'
    )


def _why_not_imported(name: str) -> str:
    """One line, empty where it is imported: what is there may be compiled for another Python."""
    if name in _OF_VLLM:
        return "" if find_spec(name) else f"no module {name}"
    try:
        import_module(name)
    except Exception as error:  # noqa: BLE001 - whatever a package of others raises
        return one_line(f"{error}", _MOST_CHARACTERS) or type(error).__name__
    return ""


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
