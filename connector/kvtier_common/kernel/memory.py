"""How much ordinary memory this process may have."""

import os
from pathlib import Path

from kvtier_common.kernel.cgroup import lowest_limit


def physical_bytes() -> int:
    """The machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def limit_bytes(proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What the control groups leave this process, such as a container's limit; None for no limit.

    Args:
        proc: The proc file system.
        root: Where control groups are mounted.
    """
    return lowest_limit(
        controller="memory", v1="memory.limit_in_bytes", v2="memory.max", proc=proc, root=root
    )
