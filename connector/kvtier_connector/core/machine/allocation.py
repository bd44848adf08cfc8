"""Files and memory whose space is all there before anything is written to them."""

import mmap
import os

from kvtier_connector.errors import ConnectorError


def allocate(descriptor: int, size_bytes: int) -> int:
    """Give a new file its size and take all of its space; returns the descriptor.

    fallocate(2) takes the space before anything touches it: what is exhausted says so now, and neither with a
    SIGBUS nor with a write that fails later. Raises OSError: there is not enough; the descriptor is closed.
    """
    try:
        os.ftruncate(descriptor, size_bytes)
        os.posix_fallocate(descriptor, 0, size_bytes)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def create_words(name: str, size_bytes: int) -> tuple[mmap.mmap, str]:
    """Make memory of zeros and return it with its path for `attach_words`; OSError if there is not enough.

    It is there until this process has ended and all have let go. The name is for people who look at the
    process's descriptors.
    """
    descriptor = allocate(os.memfd_create(name, os.MFD_CLOEXEC), size_bytes)
    return mmap.mmap(descriptor, size_bytes), f"/proc/{os.getpid()}/fd/{descriptor}"


def attach_words(path: str) -> mmap.mmap:
    """Map what `create_words` has made. Raises ConnectorError: it cannot be reached."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise ConnectorError(f"{path}: {error.strerror}") from error
    try:
        return mmap.mmap(descriptor, 0)
    finally:
        os.close(descriptor)
