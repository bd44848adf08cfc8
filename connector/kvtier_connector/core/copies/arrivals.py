"""What has come from disk into the region, told to the worker that copies it while more is on its way.

A row for each slot of the region, in memory that the worker shares with the process that has the disk. Its
first word is the ticket of the last read into the slot, and how far that has come. A ticket is given out
once, so that what an earlier read left is never taken for a later one's, and nothing has to be reset. The
others are what the worker needs to check the block itself, when it copies it.
"""

import mmap
import threading
import time
from itertools import count
from typing import Final

import numpy as np
import numpy.typing as npt

from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.core.machine.memory import attach_words, create_words
from kvtier_connector.errors import ConnectorError, DiskError

Tickets = npt.NDArray[np.int64]
TICKETS: Final = count(1)  # for reads; 0 stands for what is in the region already

ROW_BYTES: Final = 24
_ROW_WORDS: Final = ROW_BYTES // 8
FAILED: Final = 0  # instead of a number of parts: nothing more comes of a read
DOUBTED: Final = 254  # all parts of a block are there, and the worker says that its checksum is wrong
WHOLE: Final = 255
"""All parts of a block are there, and its checksum is right. Until then, nobody has checked any."""
_COUNT_BITS: Final = 8
_LOOK_S: Final = 0.0002  # how often an arrival is looked for: a block's time on a fast disk


class Arrivals:
    """The rows. The process that has the disk tells of a read, and the worker of what it has checked."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._words = memoryview(memory).cast("Q")
        self._reads = np.frombuffer(memory, np.int64)[::_ROW_WORDS]
        self._lock = threading.Lock()

    def tell(self, slot: int, ticket: int, parts: int) -> None:
        """Say how many parts of a read are there, or FAILED, DOUBTED or WHOLE; FAILED and WHOLE are final.

        Whoever calls this has seen the bytes before it took the interpreter's lock for the last time: on
        processors that reorder writes, too, they are there before the word is.
        """
        word = self._words[slot * _ROW_WORDS]
        of, there = word >> _COUNT_BITS, word & WHOLE
        if of < ticket or (of == ticket and there not in {FAILED, WHOLE}):
            self._words[slot * _ROW_WORDS] = ticket << _COUNT_BITS | parts

    def how_far(self, slot: int, ticket: int) -> int:
        """Return what was told last of a read, or FAILED if that was of another one."""
        word = self._words[slot * _ROW_WORDS]
        return word & WHOLE if word >> _COUNT_BITS == ticket else FAILED

    def expect(self, slot: int, seed: int, checksum: int) -> None:
        """Say what a block's checksum has to be: some time before its last part is told of."""
        row = slot * _ROW_WORDS
        self._words[row + 1], self._words[row + 2] = seed, checksum

    def seed_and_checksum(self, slot: int) -> tuple[int, int]:
        """Return the seed and the checksum of a block of which all parts are there."""
        row = slot * _ROW_WORDS
        return self._words[row + 1], self._words[row + 2]

    def wait(self, slots: Slots, tickets: Tickets, parts: int, timeout_s: float) -> None:
        """Return when so many parts of all these reads have come, or WHOLE; ticket 0 is waited for by nobody.

        Raises DiskError: a read has failed, or none got further for longer than the timeout.
        """
        slots, tickets = slots[tickets > 0], tickets[tickets > 0]
        until = time.monotonic() + timeout_s
        left = len(slots)
        while left:
            with self._lock:
                words = self._reads[slots]
            of, there = words >> _COUNT_BITS, words & WHOLE
            if ((of == tickets) & (there == FAILED) | (of > tickets)).any():
                raise DiskError("a block could not be read from disk")
            now = time.monotonic()
            if (still := len(slots) - int(((of == tickets) & (there >= parts)).sum())) < left:
                left, until = still, now + timeout_s
            elif now > until:
                raise DiskError(f"nothing has come from disk for {timeout_s:g} s")
            if left:
                time.sleep(_LOOK_S)
        # The words were read before the lock was given up, and the bytes are read after it is taken: on
        # processors that reorder reads, too, they are not older than the words.
        with self._lock:
            pass


def create(slots: int) -> str:
    """Make the rows for so many slots, and return their path for `attach`.

    They are there until this process has ended and all have let go. Raises ConnectorError: there is not
    enough memory.
    """
    try:
        _, path = create_words("kvtier-arrivals", slots * ROW_BYTES)
    except OSError as error:
        raise ConnectorError(f"no memory for {ROW_BYTES} bytes a slot: {error.strerror}") from error
    return path


def attach(path: str) -> Arrivals:
    """Map what `create` has made. Raises ConnectorError: it cannot be reached."""
    return Arrivals(attach_words(path))
