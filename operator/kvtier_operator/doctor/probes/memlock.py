"""Locks memory as the tier will, and lets it go at once."""

import ctypes
import mmap
import os
from typing import Final

from kvtier_common.kernel import has_ipc_lock, memlock_limits
from kvtier_operator.doctor.checks.memlock import MemlockFacts
from kvtier_operator.planning.pod.demands import MemlockDemand
from kvtier_operator.planning.units import MIB

_LOCK_ON_FAULT: Final = 1
"""MLOCK_ONFAULT of mlock2(2), Linux 4.4: counts against the limit, brings no page in."""
_PROOF_BYTES: Final = MIB
"""Really locked."""


def probe_memlock(demand: MemlockDemand) -> MemlockFacts:
    """Tries to lock as much; the limit and the capability explain a refusal."""
    limit_bytes, _ = memlock_limits()
    return MemlockFacts(
        refusal=_lock(demand.bytes) if demand.bytes else "",
        limit_bytes=limit_bytes,
        ipc_lock=has_ipc_lock(),
    )


def _lock(size_bytes: int) -> str:
    """Locks pages on their first touch, so that nothing of the region is taken, then a piece at once.

    mlock(2) asks the kernel for more than the numbers say: a user namespace's IPC_LOCK does not count.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long),
    )
    # without access rights the mapping is no one's memory until it is touched, which never happens
    address = libc.mmap(None, size_bytes, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if address == ctypes.c_void_p(-1).value:
        return os.strerror(ctypes.get_errno())
    region, length = ctypes.c_void_p(address), ctypes.c_size_t(size_bytes)
    try:
        if libc.mlock2(region, length, _LOCK_ON_FAULT) != 0:
            return os.strerror(ctypes.get_errno())
    finally:
        libc.munmap(region, length)
    piece = min(size_bytes, _PROOF_BYTES)
    with mmap.mmap(-1, piece) as memory:
        start = ctypes.c_char.from_buffer(memory)
        refused = libc.mlock(ctypes.byref(start), ctypes.c_size_t(piece)) != 0
        del start
        return os.strerror(ctypes.get_errno()) if refused else ""
