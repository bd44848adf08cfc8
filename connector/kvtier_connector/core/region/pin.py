"""Keeping the region in memory: mlock(2) for a CPU engine; a CUDA engine page-locks it for DMA instead."""

import ctypes
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from kvtier_connector.config import MIB, Policy
from kvtier_connector.core.machine.memory import (
    LockLimit,
    format_bytes,
    lock_limit,
    raise_soft_limit,
    tightest_bound,
)
from kvtier_connector.core.region.pages import Piece
from kvtier_connector.core.region.region import Slice
from kvtier_connector.core.region.report import RegionReport, range_state
from kvtier_connector.errors import PinError

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_AT_ONCE_BYTES: Final = 2 * MIB
"""Locked by one call, for which whoever else changes this process's memory waits."""

Register = Callable[[int, int], str | None]  # page-locks (address, bytes); returns None, or why it could not


@dataclass(frozen=True, slots=True)
class Pinning:
    """How pieces of a slice are locked."""

    asked: Policy  # the policy
    how: str  # for people
    # locks (address, bytes); returns None, or why it could not. None where there is nothing to do.
    call: Register | None = None
    counts: bool = True  # what is taken stays where it is, once `call` has taken it
    is_needed: bool = False  # a piece that could not be locked is not used
    # returns what speaks against the first bytes of a slice being locked, or nothing
    check: "Callable[[Slice, int], str] | None" = None


@dataclass(frozen=True, slots=True)
class PinReport:
    """How much of the memory stays where it is, and how it was locked or why not all of it was."""

    asked: Policy
    pinned_bytes: int
    size_bytes: int
    why: str

    @property
    def is_locked(self) -> bool:
        """Whether all of it stays."""
        return self.pinned_bytes >= self.size_bytes

    def __str__(self) -> str:
        if self.is_locked:
            return f"locked ({self.why})"
        asked = "" if self.asked is Policy.NEVER else f"asked {self.asked}: "
        if not self.pinned_bytes:
            return f"not locked ({asked}{self.why})"
        share = f"{format_bytes(self.pinned_bytes)} of {format_bytes(self.size_bytes)}"
        return f"{share} locked ({asked}{self.why})"


def preflight(report: RegionReport, slice_bytes: int, policy: Policy) -> None:
    """Look whether `lock` has a chance, before a slice's memory is taken, which takes long.

    Only Require is refused here; under Prefer, `lock` tries and says what came of it. Raises PinError: the
    limit, or a control group's memory, is too small, with needed, free and limit.
    """
    if policy is not Policy.REQUIRE or report.on_hugetlbfs:
        return
    limit = lock_limit()
    if not limit.allows(slice_bytes):
        raise _pin_error(_shortage(slice_bytes, limit))
    bound = tightest_bound()
    if slice_bytes > bound.available_bytes:
        raise _pin_error(
            f"{format_bytes(slice_bytes)} needed, {format_bytes(max(0, bound.available_bytes))} free "
            f"({bound.source})"
        )


def lock(memory: Slice, pieces: Iterable[Piece], pinning: Pinning) -> PinReport:
    """Lock a slice that is all there, piece by piece until one is refused, and look whether it is.

    Raises PinError: the policy is Require, and not all of it is locked.
    """
    pinned_bytes, size_bytes, why = 0, memory.size_bytes, pinning.how
    for piece in pieces:
        size_bytes = piece.offset_bytes + piece.size_bytes
        if why is pinning.how and pinning.call is not None:
            why = pinning.call(memory.address + piece.offset_bytes, piece.size_bytes) or why
        if why is pinning.how and pinning.counts:
            pinned_bytes = size_bytes
    report = check_lock(memory, PinReport(pinning.asked, pinned_bytes, size_bytes, why), pinning)
    if not report.is_locked and pinning.asked is Policy.REQUIRE:
        raise _pin_error(report.why)
    return report


def check_lock(memory: Slice, report: PinReport, pinning: Pinning) -> PinReport:
    """Return the report with what the kernel says itself of memory that it has locked."""
    missing = pinning.check(memory, report.pinned_bytes) if pinning.check and report.pinned_bytes else ""
    if not missing:
        return report
    why = f"the kernel took mlock of {format_bytes(report.pinned_bytes)}, but {missing}"
    return replace(report, pinned_bytes=0, why=why)


def by_kernel(memory: Slice, policy: Policy) -> Pinning:
    """Return how pieces of a slice are locked for an engine on a CPU: one that is not is used all the same.

    The kernel counts what a process has locked against RLIMIT_MEMLOCK, unless CAP_IPC_LOCK is effective
    (mlock(2)). A soft limit below the hard one is raised.
    """
    if policy is Policy.NEVER:
        return Pinning(policy, "memlock: Never", counts=False)
    if memory.report.on_hugetlbfs:
        return Pinning(policy, "hugetlbfs pages are never swapped")

    def mlock(address: int, size_bytes: int) -> str | None:
        limit = raise_soft_limit(lock_limit(), size_bytes)
        parts = range(address, address + size_bytes, _AT_ONCE_BYTES)
        ends = (min(part + _AT_ONCE_BYTES, address + size_bytes) for part in parts)
        if all(
            _LIBC.mlock(ctypes.c_void_p(part), ctypes.c_size_t(end - part)) == 0
            for part, end in zip(parts, ends, strict=True)
        ):
            return None
        reason = os.strerror(ctypes.get_errno())
        _LIBC.munlock(ctypes.c_void_p(address), ctypes.c_size_t(size_bytes))  # a piece is locked or it is not
        return f"mlock of {format_bytes(size_bytes)}: {reason}; {_shortage(size_bytes, limit)}"

    return Pinning(policy, "mlock", call=mlock, check=_not_locked)


def by_driver(policy: Policy, register_piece: Register) -> Pinning:
    """Return how pieces of a slice are page-locked for DMA: one that is not is not used.

    Copies from and to memory that is not page-locked hold up the engine's own work: a prompt that was
    computed and stored took a third longer than without a tier (docs/development/connector-figures.md).
    """
    if policy is Policy.NEVER:
        return Pinning(policy, "memlock: Never", counts=False)

    def register_(address: int, size_bytes: int) -> str | None:
        refusal = register_piece(address, size_bytes)
        return None if refusal is None else f"registering {format_bytes(size_bytes)} for DMA: {refusal}"

    return Pinning(policy, "page-locked for DMA", call=register_, is_needed=True)


def _shortage(size_bytes: int, limit: LockLimit) -> str:
    return f"{format_bytes(size_bytes)} needed, {limit}"


def _not_locked(memory: Slice, size_bytes: int) -> str:
    """Return what /proc says against the first bytes of a slice being locked, or nothing."""
    state = range_state(memory.address, size_bytes)
    in_status = lock_limit().locked_bytes
    for where, actual_bytes in (
        ("/proc/self/status has VmLck", in_status),
        ("/proc/self/smaps has locked", state.locked_bytes),
        ("/proc/self/smaps has resident", state.resident_bytes),
    ):
        if actual_bytes < size_bytes:
            return f"{where} {format_bytes(actual_bytes)}"
    return ""


def _pin_error(why: str) -> PinError:
    return PinError(
        f"memlock: Require, but {why}; raise the limit (ulimit -l; LimitMEMLOCK of the container runtime), "
        "add IPC_LOCK and run as root, or set Prefer"
    )
