"""What this machine has for a local run: memory, huge pages, the memlock limit, disk and cores."""

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kvtier_common.kernel import has_ipc_lock, memlock_limits
from kvtier_operator.doctor.probes.memory import probe_memory
from kvtier_operator.doctor.probes.volume import used_bytes
from kvtier_operator.planning.observed import Machine

_SHM: Final = Path("/dev/shm")  # noqa: S108 - its size is read, nothing is written there
_HUGEPAGES: Final = Path("/sys/kernel/mm/hugepages")
_SELF: Final = Path("/proc/self")


def this_machine(disk_path: Path | None = None, own: Iterable[Path] = ()) -> Machine:
    """Observes this machine.

    Args:
        disk_path: Where a disk tier would live, which may not be there yet; the working folder when empty.
        own: Folders there that are the tier's already.
    """
    place = (disk_path or Path()).absolute()
    there = next(each for each in (place, *place.parents) if each.is_dir())
    return Machine(
        memory_bytes=probe_memory().limit_bytes,
        shm_bytes=shutil.disk_usage(_SHM).free if _SHM.is_dir() else None,
        free_hugepages=free_hugepages(),
        memlock_bytes=memlock_bytes(),
        disk_free_bytes=shutil.disk_usage(there).free,
        disk_own_bytes=sum(used_bytes(folder) for folder in own),
        cores=tuple(sorted(os.sched_getaffinity(0))),
    )


def memlock_bytes(proc: Path = _SELF) -> int | None:
    """The most memory that this process may lock; None without a limit, and where IPC_LOCK is effective.

    Args:
        proc: The process's folder in the proc file system.
    """
    soft_limit_bytes, _ = memlock_limits()
    return None if has_ipc_lock(proc) else soft_limit_bytes


def free_hugepages(pools: Path = _HUGEPAGES) -> Mapping[int, int]:
    """Free huge pages by page size in bytes (Linux, Documentation/admin-guide/mm/hugetlbpage.rst).

    Args:
        pools: The kernel's folder of pools.
    """
    free = {}
    for pool in pools.glob("hugepages-*kB"):
        page_bytes = int(pool.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        free[page_bytes] = int((pool / "free_hugepages").read_text(encoding="ascii"))
    return free
