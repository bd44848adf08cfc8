"""How much memory this process may lock, by its limit and its capabilities."""

import resource
from pathlib import Path
from typing import Final

_SELF: Final = Path("/proc/self")
_CAP_IPC_LOCK: Final = 1 << 14
"""capabilities(7), bit 14."""


def memlock_limits() -> tuple[int | None, int | None]:
    """RLIMIT_MEMLOCK in bytes: the soft limit and the hard one, None for unlimited."""
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return (
        None if soft == resource.RLIM_INFINITY else soft,
        None if hard == resource.RLIM_INFINITY else hard,
    )


def has_ipc_lock(proc: Path = _SELF) -> bool:
    """Whether CAP_IPC_LOCK is effective, which lifts the limit.

    Args:
        proc: The process's folder in the proc file system.
    """
    fields = status_fields(proc)
    return bool(int(fields.get("CapEff", "0"), 16) & _CAP_IPC_LOCK)


def status_fields(proc: Path = _SELF) -> dict[str, str]:
    """What the kernel says of a process, by name, such as `VmLck`."""
    text = (proc / "status").read_text(encoding="ascii", errors="replace")
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
