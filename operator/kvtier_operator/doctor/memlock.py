"""Whether the CPU tier can be locked in memory."""

import ctypes
import mmap
import os
from dataclasses import dataclass
from typing import Final

from kvtier_common.kernel import has_ipc_lock, memlock_limits
from kvtier_operator.doctor.verdict import Place, Verdict
from kvtier_operator.planning.pod.demands import MemlockDemand
from kvtier_operator.planning.units import MIB, size

_CHECK: Final = "memlock"


@dataclass(frozen=True, slots=True)
class MemlockFacts:
    """The result of the probe, and the numbers that explain it."""

    refusal: str  # why the kernel refused to lock as much, in its words; empty where it could be locked
    limit_bytes: int | None  # RLIMIT_MEMLOCK; None for unlimited
    ipc_lock: bool  # whether the capability IPC_LOCK is effective


def memlock(demand: MemlockDemand, facts: MemlockFacts, place: Place) -> Verdict:
    """`Require` fails, `Prefer` warns."""
    if not demand.bytes:
        return Verdict.passed(_CHECK, "nothing to lock: explicit huge pages are never swapped")
    limit = "unlimited" if facts.limit_bytes is None else size(facts.limit_bytes)
    lifted = "effective" if facts.ipc_lock else "not effective"
    numbers = f"{size(demand.bytes)} to lock in each process, RLIMIT_MEMLOCK is {limit}, IPC_LOCK is {lifted}"
    if not facts.refusal:
        return Verdict.passed(_CHECK, numbers)
    problem = f"{numbers}, the kernel refused: {facts.refusal}"
    if not demand.required:
        return Verdict.warned(_CHECK, f"{problem}: the tier stays unlocked (policy Prefer)")
    return Verdict.failed(
        _CHECK, f"{problem}; {_advice(facts, place)}, or set spec.tiers.cpu.memlock.policy to Prefer"
    )


def _advice(facts: MemlockFacts, place: Place) -> str:
    if not place.in_pod:
        return "raise the limit (ulimit -l unlimited)"
    if facts.ipc_lock:
        # capabilities of a user namespace do not count for mlock(2), which asks the first one
        return "run the pod without a user namespace (hostUsers) and without a sandbox that refuses mlock"
    return (
        f"set LimitMEMLOCK=infinity for the container runtime of {place.name} (systemctl edit containerd) "
        "and restart it, or let the pod run as root with IPC_LOCK"
    )


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
