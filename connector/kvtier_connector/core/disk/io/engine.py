"""What the disk tier needs of an operating system: many reads and writes of whole blocks at a time."""

import errno
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from kvtier_connector.core.behind.messages import statically_frozen
from kvtier_connector.errors import DiskError

JOINED_BYTES: Final = 512 << 10
"""Neighbours on disk are moved by one transfer up to so many bytes: larger ones were no faster anywhere, and
each takes Python some microseconds (docs/development/connector-figures.md)."""


class EngineUnavailableError(DiskError):
    """This way of talking to the kernel is not to be had here; another may be."""


@statically_frozen
class BlockIO:
    """One block's read or write."""

    tag: int  # the caller's name for it
    write: bool  # the direction: True from memory to disk
    descriptor: int  # of the open file
    offset: int  # of the block in the file, in bytes
    # the caller's, in the order of the file; where the file passes by the page cache, addresses and lengths
    # are multiples of DISK_ALIGNMENT_BYTES. It must stay as it is until the end is reported. At most 1,024
    # pieces (IOV_MAX, readv(2)).
    memory: tuple[memoryview, ...]


@statically_frozen
class Completion:
    """How a read or write ended: the kernel touches its memory no more."""

    io: BlockIO
    seconds: float  # from its hand-over to the kernel to its end
    error: OSError | None  # why it failed, or None. A transfer that ends short is a failure too (EIO).


class IOEngine(Protocol):
    """Keeps up to `depth` transfers in the kernel's hands: the engine of reads and writes, not of a model.

    One thread owns it; only `wake` is for others.
    """

    name: str  # for people: how it talks to the kernel
    depth: int
    joined_bytes: int  # how large a transfer of several blocks may be

    def submit(self, ios: Sequence[BlockIO]) -> None:
        """Take transfers on and return at once; those beyond `depth` wait for their turn, in order."""

    def take_completions(self, timeout_s: float) -> list[Completion]:
        """Return what has ended since the last call; waits for the first one or `wake`, at most this long."""

    def wake(self) -> None:
        """Make the owner's `take_completions` return now, or its next one if it is not waiting.

        From any thread, also after `close`. Several calls before `take_completions` returns count as one.
        """

    def overdue(self, limit_s: float) -> list[BlockIO]:
        """Return the transfers that the kernel has had for longer than this; they still end, some time."""

    @property
    def in_flight(self) -> int:
        """Number of transfers in the kernel's hands or waiting for their turn."""

    def close(self) -> None:
        """Let go of the kernel's and the engine's resources without waiting for a device that hangs.

        What the kernel has then is never reported: its memory must not be used again.
        """


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
