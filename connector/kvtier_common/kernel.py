"""What Linux lets this process have: limits of its control groups, ordinary memory, and memory to lock."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_UNLIMITED: Final = 1 << 60  # version 1 writes the largest whole number of pages where there is no limit
_SELF: Final = Path("/proc/self")
_CAP_IPC_LOCK: Final = 1 << 14  # capabilities(7), bit 14


def lowest_limit(
    *, controller: str, v1: str, v2: str, proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """The lowest limit of the own group and those above it; None where none is set or to be seen.

    `controller` is version 1's, such as `memory`, `v1` its file's name, such as `memory.limit_in_bytes`, and
    `v2` version 2's, such as `memory.max`. Control groups are mounted at `root`.
    """
    limits = [
        limit
        for folder, version in groups(controller, proc, root)
        if (limit := _read_limit(folder / (v1 if version == 1 else v2))) is not None
    ]
    return min(limits, default=None)


def groups(controller: str, proc: Path, root: Path) -> Iterator[tuple[Path, int]]:
    """Folders of this process's groups of a controller, and of those above, some of which may not be there.

    Each with its version. Source: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/.
    """
    for line in (proc / "self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            # Where both versions are mounted, version 2 lies beside the controllers of version 1.
            mounts, version = [root, root / "unified"], 2
        elif controller in controllers.split(","):
            mounts, version = [root / controllers, root / controller], 1
        else:
            continue
        # In a container the path may be the host's, while only the own group is mounted, at the root.
        relative = Path(group.lstrip("/"))
        for mount in mounts:
            for folder in (relative, *relative.parents):
                yield mount / folder, version


def _read_limit(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and int(text) < _UNLIMITED else None


def physical_bytes() -> int:
    """The machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def meminfo_bytes(proc: Path = Path("/proc")) -> dict[str, int]:
    """What the kernel says of the machine's memory, by name, such as `MemAvailable` or `Hugetlb`."""
    text = (proc / "meminfo").read_text(encoding="ascii")
    fields = (line.partition(":") for line in text.splitlines() if line.endswith(" kB"))
    return {name: int(value.split()[0]) * 1024 for name, _, value in fields}


def memory_limit_bytes(proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What the control groups leave this process, such as a container's limit; None for no limit."""
    return lowest_limit(
        controller="memory", v1="memory.limit_in_bytes", v2="memory.max", proc=proc, root=root
    )


def memlock_limits() -> tuple[int | None, int | None]:
    """RLIMIT_MEMLOCK in bytes: the soft limit and the hard one, None for unlimited."""
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return (
        None if soft == resource.RLIM_INFINITY else soft,
        None if hard == resource.RLIM_INFINITY else hard,
    )


def has_ipc_lock(proc: Path = _SELF) -> bool:
    """Whether CAP_IPC_LOCK is effective, which lifts the limit."""
    fields = status_fields(proc)
    return bool(int(fields.get("CapEff", "0"), 16) & _CAP_IPC_LOCK)


def status_fields(proc: Path = _SELF) -> dict[str, str]:
    """What the kernel says of a process, by name, such as `VmLck`."""
    text = (proc / "status").read_text(encoding="ascii", errors="replace")
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
