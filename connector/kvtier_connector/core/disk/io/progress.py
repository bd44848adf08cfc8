"""How far a transfer has come, and what is left of it: the kernel may do less than it was asked to."""

import errno
from collections.abc import Iterator

from kvtier_connector.core.disk.io.engine import BlockIO


def size_bytes(io: BlockIO) -> int:
    """Return how many bytes are to be read or written."""
    return sum(part.nbytes for part in io.memory)


def parts_after(io: BlockIO, done_bytes: int) -> Iterator[memoryview]:
    """Yield the memory that lies behind the first `done_bytes` of a transfer."""
    for part in io.memory:
        if done_bytes < part.nbytes:
            yield part.cast("B")[done_bytes:]
        done_bytes = max(0, done_bytes - part.nbytes)


def ended_short(io: BlockIO, done_bytes: int) -> OSError:
    """Return the error of a transfer that does not get any further, as at the end of a file."""
    did = "wrote" if io.write else "read"
    return OSError(errno.EIO, f"{did} {done_bytes} of {size_bytes(io)} bytes at offset {io.offset}")


def unusable(io: BlockIO, error: Exception) -> OSError:
    """Return the error of a transfer whose memory cannot be used: released, or read-only for a read."""
    return OSError(errno.EFAULT, f"the memory of the {'write' if io.write else 'read'}: {error}")
