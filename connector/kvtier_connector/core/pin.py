"""Keeping the region in memory: mlock(2) for a CPU engine; a CUDA engine page-locks it for DMA instead."""

import ctypes
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from kvtier_connector.config import GIB, Policy
from kvtier_connector.core.locklimit import LockLimit, lock_limit, raised
from kvtier_connector.core.mappings import range_state
from kvtier_connector.core.memory import format_bytes, tightest_bound
from kvtier_connector.core.region import Slice
from kvtier_connector.core.region_report import RegionReport
from kvtier_connector.errors import PinError

REGISTER_PIECE_BYTES: Final = 64 * GIB
"""Drivers fail on larger single registrations (vLLM v1/kv_offload/cpu/gpu_worker.py has the same bound)."""
_LIBC: Final = ctypes.CDLL(None, use_errno=True)

Register = Callable[[int, int], str | None]
"""Page-locks (address, bytes); returns None, or why it could not."""
Unregister = Callable[[int], object]
"""Releases what was page-locked at an address."""


@dataclass(frozen=True, slots=True)
class PinReport:
    """Whether the memory stays where it is, and why or why not.

    Args:
        asked: the policy.
        locked: whether it stays.
        why: for people.
    """

    asked: Policy
    locked: bool
    why: str

    def __str__(self) -> str:
        if self.locked:
            return f"locked ({self.why})"
        asked = "" if self.asked is Policy.OFF else f"asked {self.asked}: "
        return f"not locked ({asked}{self.why})"


def preflight(report: RegionReport, slice_bytes: int, policy: Policy) -> None:
    """Look whether `lock` has a chance, before a slice's memory is taken, which takes long.

    Args:
        report: what `region.create` got.
        slice_bytes: the slice's size.
        policy: only Require is refused here; under Prefer, `lock` tries and says what came of it.

    Raises:
        PinError: the limit, or a control group's memory, is too small, with needed, free and limit.
    """
    if policy is not Policy.REQUIRE or report.on_hugetlbfs:
        return
    limit = lock_limit()
    if not limit.allows(slice_bytes):
        raise _required(_shortage(slice_bytes, limit))
    bound = tightest_bound()
    if slice_bytes > bound.available_bytes:
        raise _required(
            f"{format_bytes(slice_bytes)} needed, {format_bytes(max(0, bound.available_bytes))} free "
            f"({bound.source})"
        )


def lock(memory: Slice, policy: Policy) -> PinReport:
    """Lock a slice into memory with mlock(2), and look whether it is.

    The kernel counts what a process has locked against RLIMIT_MEMLOCK, unless CAP_IPC_LOCK is effective
    (mlock(2)). A soft limit below the hard one is raised.

    Raises:
        PinError: the policy is Require and the kernel refuses.
    """
    if policy is Policy.OFF:
        return PinReport(policy, locked=False, why="memlock: Off")
    if memory.report.on_hugetlbfs:
        return PinReport(policy, locked=True, why="hugetlbfs pages are never swapped")
    limit = raised(lock_limit(), memory.size_bytes)
    if _LIBC.mlock(ctypes.c_void_p(memory.address), ctypes.c_size_t(memory.size_bytes)) != 0:
        reason = os.strerror(ctypes.get_errno())
        size = format_bytes(memory.size_bytes)
        return _refused(policy, f"mlock of {size}: {reason}; {_shortage(memory.size_bytes, limit)}")
    missing = _not_locked(memory)
    if missing:
        return _refused(policy, f"the kernel took mlock of {format_bytes(memory.size_bytes)}, but {missing}")
    return PinReport(policy, locked=True, why="mlock")


def register(
    memory: Slice, policy: Policy, register_piece: Register, unregister_piece: Unregister | None = None
) -> PinReport:
    """Page-lock a slice for DMA, piece by piece: all of it or nothing.

    A copy from memory of which a part is page-locked and another part is not fails (CUDA driver API,
    cuMemcpyAsync), so where one piece is refused, the others are released.

    Args:
        memory: the slice.
        policy: what to do where the driver refuses; the copies then still work, only slower.
        register_piece: the driver's call.
        unregister_piece: the call that takes it back.

    Raises:
        PinError: the policy is Require and the driver refuses.
    """
    if policy is Policy.OFF:
        return PinReport(policy, locked=False, why="memlock: Off")
    done: list[int] = []
    for address, size in _pieces(memory):
        refusal = register_piece(address, size)
        if refusal is not None:
            while unregister_piece is not None and done:
                unregister_piece(done.pop())
            return _refused(policy, f"registering {format_bytes(size)} for DMA: {refusal}")
        done.append(address)
    return PinReport(policy, locked=True, why="page-locked for DMA")


def _shortage(size_bytes: int, limit: LockLimit) -> str:
    return f"{format_bytes(size_bytes)} needed, {limit}"


def _not_locked(memory: Slice) -> str:
    """Return what /proc says against a slice's being locked, or nothing."""
    state = range_state(memory.address, memory.size_bytes)
    in_status = lock_limit().locked_bytes
    for where, found in (
        ("/proc/self/status has VmLck", in_status),
        ("/proc/self/smaps has locked", state.locked_bytes),
        ("/proc/self/smaps has resident", state.resident_bytes),
    ):
        if found < memory.size_bytes:
            return f"{where} {format_bytes(found)}"
    return ""


def _pieces(memory: Slice) -> Iterator[tuple[int, int]]:
    step = REGISTER_PIECE_BYTES
    for offset in range(0, memory.size_bytes, step):
        yield memory.address + offset, min(step, memory.size_bytes - offset)


def _refused(policy: Policy, why: str) -> PinReport:
    if policy is Policy.REQUIRE:
        raise _required(why)
    return PinReport(policy, locked=False, why=why)


def _required(why: str) -> PinError:
    return PinError(
        f"memlock: Require, but {why}; raise the limit (ulimit -l; LimitMEMLOCK of the container runtime), "
        "add IPC_LOCK and run as root, or set Prefer"
    )
