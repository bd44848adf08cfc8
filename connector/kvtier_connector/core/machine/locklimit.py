"""How much memory this process may lock, and who says so."""

import resource
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kvtier_common.kernel import has_ipc_lock, memlock_limits, status_fields
from kvtier_connector.core.machine.memory import format_bytes

_SELF: Final = Path("/proc/self")
_ALL_IDS: Final = 2**32 - 1
"""Length of the identity mapping in the first user namespace, user_namespaces(7)."""


@dataclass(frozen=True, slots=True)
class LockLimit:
    """A process's limit on locked memory.

    Args:
        limit_bytes: RLIMIT_MEMLOCK as it is, the soft limit; None for unlimited.
        hard_bytes: what it may be raised to; None for unlimited.
        locked_bytes: what is locked already.
        privileged: CAP_IPC_LOCK is effective and counts: the limit does not hold.
        in_namespace: the process is in a user namespace, where the capability does not count for mlock(2).
    """

    limit_bytes: int | None
    hard_bytes: int | None
    locked_bytes: int
    privileged: bool
    in_namespace: bool

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
    """Return this process's limit.

    Args:
        proc: the process's folder in the proc file system.
    """
    soft, hard = memlock_limits()
    in_namespace = (proc / "uid_map").read_text().split() != ["0", "0", str(_ALL_IDS)]
    return LockLimit(
        limit_bytes=soft,
        hard_bytes=hard,
        locked_bytes=int(status_fields(proc)["VmLck"].split()[0]) * 1024,
        privileged=has_ipc_lock(proc) and not in_namespace,
        in_namespace=in_namespace,
    )


def raised(limit: LockLimit, more_bytes: int) -> LockLimit:
    """Raise the soft limit to the hard one if so much more would not fit below it; return the limit then."""
    if limit.privileged or limit.limit_bytes is None or limit.locked_bytes + more_bytes <= limit.limit_bytes:
        return limit
    hard = resource.RLIM_INFINITY if limit.hard_bytes is None else limit.hard_bytes
    with suppress(OSError, ValueError):  # a sandbox may forbid it
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
        return replace(limit, limit_bytes=limit.hard_bytes)
    return limit
