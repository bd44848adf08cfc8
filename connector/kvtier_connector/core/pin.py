"""Keeping the region in memory: mlock(2) for a CPU engine; a CUDA engine page-locks it for DMA instead."""

import ctypes
import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from kvtier_connector.config import GIB, Policy
from kvtier_connector.core.memory import format_bytes
from kvtier_connector.core.region import Slice
from kvtier_connector.errors import PinError

REGISTER_PIECE_BYTES: Final = 64 * GIB
"""Drivers fail on larger single registrations (vLLM v1/kv_offload/cpu/gpu_worker.py has the same bound)."""
_LIBC: Final = ctypes.CDLL(None, use_errno=True)

Register = Callable[[int, int], str | None]
"""Page-locks (address, bytes); returns None, or why it could not."""


@dataclass(frozen=True, slots=True)
class PinReport:
    """Whether the memory stays where it is, and why or why not."""

    locked: bool
    why: str

    def __str__(self) -> str:
        return f"{'locked' if self.locked else 'not locked'} ({self.why})"


def lock(memory: Slice, policy: Policy) -> PinReport:
    """Lock a slice into memory with mlock(2).

    Raises:
        PinError: the policy is Require and the kernel refuses.
    """
    if policy is Policy.OFF:
        return PinReport(locked=False, why="memlock: Off")
    if memory.report.on_hugetlbfs:
        return PinReport(locked=True, why="hugetlbfs pages are never swapped")
    if _LIBC.mlock(ctypes.c_void_p(memory.address), ctypes.c_size_t(memory.size_bytes)) == 0:
        return PinReport(locked=True, why="mlock")
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    allowed = "unlimited" if limit == resource.RLIM_INFINITY else format_bytes(limit)
    return _refused(
        policy,
        f"mlock of {format_bytes(memory.size_bytes)}: {os.strerror(ctypes.get_errno())}; RLIMIT_MEMLOCK is "
        f"{allowed} and CAP_IPC_LOCK is not effective",
    )


def register(memory: Slice, policy: Policy, register_piece: Register) -> PinReport:
    """Page-lock a slice for DMA, piece by piece.

    Args:
        memory: the slice.
        policy: what to do where the driver refuses; the copies then still work, only slower.
        register_piece: the driver's call.

    Raises:
        PinError: the policy is Require and the driver refuses.
    """
    if policy is Policy.OFF:
        return PinReport(locked=False, why="memlock: Off")
    for address, size in _pieces(memory):
        refusal = register_piece(address, size)
        if refusal is not None:
            return _refused(policy, f"registering {format_bytes(size)} for DMA: {refusal}")
    return PinReport(locked=True, why="page-locked for DMA")


def _pieces(memory: Slice) -> Iterator[tuple[int, int]]:
    step = REGISTER_PIECE_BYTES
    for offset in range(0, memory.size_bytes, step):
        yield memory.address + offset, min(step, memory.size_bytes - offset)


def _refused(policy: Policy, why: str) -> PinReport:
    if policy is Policy.REQUIRE:
        raise PinError(f"memlock: Require, but {why}; raise the limit, add IPC_LOCK as root, or set Prefer")
    return PinReport(locked=False, why=why)
