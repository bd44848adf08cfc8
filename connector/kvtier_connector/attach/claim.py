"""Of several servers in one pod the first has the tier: none knows how many there are, or its part."""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kvtier_connector.payload import CACHE_PATH, PAYLOAD_PATH

_CLAIMED: Final = "KVTIER_ATTACH_CLAIMED"
"""Set for the processes that a server starts: they are the same server."""


def claim_tier(folders: Sequence[Path] = (Path(PAYLOAD_PATH), Path(CACHE_PATH))) -> bool:
    """Whether this server is the first of its pod; so, too, where nothing can be written, as outside a pod.

    The lock is this process's, ends with it, and is none that a fork has as well.
    """
    if _CLAIMED in os.environ:
        return True
    lock = next((file for file in map(_lock_file, folders) if file is not None), None)
    if lock is None:
        return True
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # how POSIX says that another has it
        os.close(lock)
        return False
    except OSError:
        os.close(lock)
        return True
    os.environ[_CLAIMED] = "1"
    return True


def _lock_file(folder: Path) -> int | None:
    """A descriptor of the file in the first folder that can be written."""
    try:
        return os.open(folder / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return None
