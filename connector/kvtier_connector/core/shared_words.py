"""Memory for words that one process of an engine writes and another reads."""

import mmap
import os

from kvtier_connector.core.machine.allocation import allocated
from kvtier_connector.errors import ConnectorError


def create(name: str, size_bytes: int) -> tuple[mmap.mmap, str]:
    """Make memory of zeros; it is there until this process has ended and all have let go.

    Args:
        name: for people who look at the process's descriptors.
        size_bytes: how much.

    Returns:
        The memory, and its path for `attach`.

    Raises:
        OSError: there is not enough.
    """
    descriptor = allocated(os.memfd_create(name, os.MFD_CLOEXEC), size_bytes)
    return mmap.mmap(descriptor, size_bytes), f"/proc/{os.getpid()}/fd/{descriptor}"


def attach(path: str) -> mmap.mmap:
    """Map what `create` has made.

    Raises:
        ConnectorError: it cannot be reached.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise ConnectorError(f"{path}: {error.strerror}") from error
    try:
        return mmap.mmap(descriptor, 0)
    finally:
        os.close(descriptor)
