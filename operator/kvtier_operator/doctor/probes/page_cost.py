"""How long memory takes to be taken and locked, page by page."""

import ctypes
import mmap
import os
import time
from statistics import median
from typing import Final

from kvtier_operator.doctor.probes.memfd import memfd
from kvtier_operator.planning.units import GIB, MIB

SAMPLE_BYTES: Final = 64 * MIB
"""Some 20 ms of ordinary pages."""
_ROUNDS: Final = 3


def seconds_per_gib(page_bytes: int | None = None) -> float | None:
    """Takes, maps and locks a sample as the CPU tier's region is, and gives it back.

    Args:
        page_bytes: Size of huge pages; None for ordinary ones.

    Returns:
        The median of a few rounds; None where the kernel does not give so much.
    """
    size_bytes = max(SAMPLE_BYTES, page_bytes or 0)
    try:
        return median(_seconds(page_bytes, size_bytes) for _ in range(_ROUNDS)) * GIB / size_bytes
    except OSError:
        return None


def _seconds(page_bytes: int | None, size_bytes: int) -> float:
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = memfd(page_bytes)
    try:
        os.ftruncate(descriptor, size_bytes)
        begun_s = time.perf_counter()
        os.posix_fallocate(descriptor, 0, size_bytes)  # an error where a touch would be a SIGBUS
        with mmap.mmap(descriptor, size_bytes, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE) as memory:
            start = ctypes.c_char.from_buffer(memory)
            libc.mlock(ctypes.byref(start), ctypes.c_size_t(size_bytes))  # where that is refused: without
            ended_s = time.perf_counter()
            del start
        return ended_s - begun_s
    finally:
        os.close(descriptor)
