"""Of several servers in one pod the first has the tier: none knows how many there are, or its part."""

import fcntl
import os
from pathlib import Path
from typing import Final

from kvtier_connector.payload import PAYLOAD_PATH

_CLAIMED: Final = "KVTIER_ATTACH_CLAIMED"
"""Set for the processes that a server starts: they are the same server."""


def claim_tier(folder: Path = Path(PAYLOAD_PATH)) -> bool:
    """Whether this server is the first of its pod; so, too, where nothing can be written, as outside a pod.

    The lock is this process's, ends with it, and is none that a fork has as well.
    """
    if _CLAIMED in os.environ:
        return True
    try:
        lock = os.open(folder / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
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
