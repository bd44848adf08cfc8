"""How much memory this process may still take and lock, and who says so; memory whose space is all there."""

import mmap
import os
import resource
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kvtier_common.kernel import groups, has_ipc_lock, memlock_limits, status_fields
from kvtier_connector.config import GIB, MIB
from kvtier_connector.errors import ConnectorError

_PROC: Final = Path("/proc")
_CGROUP: Final = Path("/sys/fs/cgroup")
_V2_LIMITS: Final = ("max", "high")
"""A group is killed beyond the first and slowed down without end beyond the second (Linux,
Documentation/admin-guide/cgroup-v2.rst): memory that is locked cannot be reclaimed from it."""
_SELF: Final = Path("/proc/self")
_ALL_IDS: Final = 2**32 - 1  # length of the identity mapping in the first user namespace, user_namespaces(7)


@dataclass(frozen=True, slots=True)
class MemoryBound:
    """An upper bound on what may still be allocated."""

    available_bytes: int
    source: str


def format_bytes(count: int) -> str:
    """Return `count` for people: in GiB, or MiB below one GiB."""
    return f"{count / GIB:.2f} GiB" if count >= GIB else f"{count / MIB:.1f} MiB"


def tightest_bound(proc: Path = _PROC, cgroup: Path = _CGROUP) -> MemoryBound:
    """Return the smallest of the kernel's and the control groups' bounds on ordinary (not huge) pages."""
    return _smallest((*_machine(proc), *_memory_groups(proc, cgroup)))


def hugetlb_bound(page_bytes: int, proc: Path = _PROC, cgroup: Path = _CGROUP) -> MemoryBound | None:
    """Return the smallest of the control groups' bounds on huge pages of one size, or None without any."""
    size = f"{page_bytes // GIB}GB" if page_bytes >= GIB else f"{page_bytes // MIB}MB"
    bounds = []
    for folder, version in groups("hugetlb", proc, cgroup):
        limit, usage = ("max", "current") if version == 2 else ("limit_in_bytes", "usage_in_bytes")  # noqa: PLR2004 - the version
        for kind in (f"hugetlb.{size}", f"hugetlb.{size}.rsvd"):
            bound = _group_bound(folder, f"{kind}.{limit}", f"{kind}.{usage}")
            bounds += [bound] if bound else []
    return _smallest(bounds) if bounds else None


def _smallest(bounds: Iterable[MemoryBound]) -> MemoryBound:
    return min(bounds, key=lambda bound: bound.available_bytes)


def _machine(proc: Path) -> Iterator[MemoryBound]:
    for line in (proc / "meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            yield MemoryBound(int(value.split()[0]) * 1024, "MemAvailable of /proc/meminfo")


def _memory_groups(proc: Path, cgroup: Path) -> Iterator[MemoryBound]:
    for folder, version in groups("memory", proc, cgroup):
        files = [("memory.limit_in_bytes", "memory.usage_in_bytes")]
        if version == 2:  # noqa: PLR2004 - the version
            files = [(f"memory.{limit}", "memory.current") for limit in _V2_LIMITS]
        for limit, usage in files:
            # Clean page cache counts as used but gives way.
            bound = _group_bound(folder, limit, usage, reclaimable=_clean_page_cache(folder))
            if bound is not None:
                yield bound


def _group_bound(folder: Path, limit: str, usage: str, reclaimable: int = 0) -> MemoryBound | None:
    try:
        limit_text = (folder / limit).read_text().strip()
        used = int((folder / usage).read_text())
    except OSError:
        return None
    if limit_text == "max":
        return None
    return MemoryBound(int(limit_text) - used + reclaimable, f"{limit} of control group {folder}")


def _clean_page_cache(folder: Path) -> int:
    try:
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except OSError:
        return 0
    return int(statistics.get("total_inactive_file", statistics.get("inactive_file", 0)))


@dataclass(frozen=True, slots=True)
class LockLimit:
    """A process's limit on locked memory."""

    limit_bytes: int | None  # RLIMIT_MEMLOCK as it is, the soft limit; None for unlimited
    hard_bytes: int | None  # what it may be raised to; None for unlimited
    locked_bytes: int  # what is locked already
    privileged: bool  # CAP_IPC_LOCK is effective and counts: the limit does not hold
    in_namespace: bool  # the process is in a user namespace, where the capability does not count for mlock(2)

    def allows(self, more_bytes: int) -> bool:
        """Whether so much more may be locked, the soft limit being raised as far as it may."""
        return self.privileged or self.hard_bytes is None or self.locked_bytes + more_bytes <= self.hard_bytes

    def __str__(self) -> str:
        why = " (not in a user namespace)" if self.in_namespace else ""
        capability = "is effective" if self.privileged else f"is not effective{why}"
        if self.limit_bytes is None:
            return f"RLIMIT_MEMLOCK is unlimited, CAP_IPC_LOCK {capability}"
        free = max(0, self.limit_bytes - self.locked_bytes)
        return (
            f"{format_bytes(free)} free of RLIMIT_MEMLOCK {format_bytes(self.limit_bytes)}, "
            f"CAP_IPC_LOCK {capability}"
        )


def lock_limit(proc: Path = _SELF) -> LockLimit:
    """Return this process's limit."""
    soft, hard = memlock_limits()
    in_namespace = (proc / "uid_map").read_text().split() != ["0", "0", str(_ALL_IDS)]
    return LockLimit(
        limit_bytes=soft,
        hard_bytes=hard,
        locked_bytes=int(status_fields(proc)["VmLck"].split()[0]) * 1024,
        privileged=has_ipc_lock(proc) and not in_namespace,
        in_namespace=in_namespace,
    )


def raise_soft_limit(limit: LockLimit, more_bytes: int) -> LockLimit:
    """Raise the soft limit to the hard one if so much more would not fit below it; return the limit then."""
    if limit.privileged or limit.limit_bytes is None or limit.locked_bytes + more_bytes <= limit.limit_bytes:
        return limit
    hard = resource.RLIM_INFINITY if limit.hard_bytes is None else limit.hard_bytes
    with suppress(OSError, ValueError):  # a sandbox may forbid it
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
        return replace(limit, limit_bytes=limit.hard_bytes)
    return limit


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
