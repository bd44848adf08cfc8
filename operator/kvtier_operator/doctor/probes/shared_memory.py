"""Size of /dev/shm."""

import os
from typing import Final

from kvtier_operator.doctor.checks.shared_memory import SharedMemoryFacts

_SHM: Final = "/dev/shm"  # noqa: S108 - its size is read, nothing is written there


def probe_shared_memory(path: str = _SHM) -> SharedMemoryFacts:
    """What statvfs(3) says of it."""
    try:
        found = os.statvfs(path)
    except OSError:
        return SharedMemoryFacts(0, 0)
    return SharedMemoryFacts(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)
