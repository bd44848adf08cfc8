"""What the kernel says of the processes of a pod, seen from this machine."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_KIB: Final = 1024
_CAP_IPC_LOCK: Final = 1 << 14  # capabilities(7)


@dataclass(frozen=True, slots=True)
class PodProcess:
    """A process of a pod, at one moment.

    Attributes:
        pid: Its number on this machine.
        command: Its command line.
        hugetlb_bytes: Huge pages that it has mapped and touched (smaps: Shared_Hugetlb, Private_Hugetlb).
        locked_bytes: Memory that it has locked (status: VmLck).
        memlock_limit_bytes: RLIMIT_MEMLOCK; None for no limit.
        may_lock: Whether IPC_LOCK is effective, so that the limit does not count.
        memory_limit_bytes: The limit of its control group.
        shm_bytes: Size of its /dev/shm.
    """

    pid: int
    command: str
    hugetlb_bytes: int
    locked_bytes: int
    memlock_limit_bytes: int | None
    may_lock: bool
    memory_limit_bytes: int
    shm_bytes: int


def pod_processes(uid: str) -> list[PodProcess]:
    """The processes of a pod's containers, without the one that holds its namespaces."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"pod{uid}" in (folder / "cgroup").read_text():
                found.append(_look(folder))
        except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
            continue
    return [each for each in found if each.command != "/pause"]


def _look(folder: Path) -> PodProcess:
    status, smaps = (folder / "status").read_text(), (folder / "smaps").read_text()
    limits = (folder / "limits").read_text()
    soft = _first_match(r"^Max locked memory +(\S+)", limits)
    shm = os.statvfs(folder / "root" / "dev" / "shm")
    return PodProcess(
        pid=int(folder.name),
        command=(folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip(),
        hugetlb_bytes=sum(_kib(smaps, rf"{kind}_Hugetlb") for kind in ("Shared", "Private")),
        locked_bytes=_kib(status, "VmLck"),
        memlock_limit_bytes=None if soft == "unlimited" else int(soft),
        may_lock=bool(int(_first_match(r"^CapEff:\s+(\w+)", status), 16) & _CAP_IPC_LOCK),
        memory_limit_bytes=_memory_limit(folder),
        shm_bytes=shm.f_blocks * shm.f_frsize,
    )


def _memory_limit(folder: Path) -> int:
    root = Path("/sys/fs/cgroup")
    for controllers, group in _groups(folder):
        if "memory" in controllers:
            return int((root / "memory" / group / "memory.limit_in_bytes").read_text())
        if not controllers and (root / "cgroup.controllers").exists():
            return int((root / group / "memory.max").read_text())
    raise RuntimeError(f"{folder} is in no memory control group")


def _groups(folder: Path) -> Iterator[tuple[list[str], str]]:
    for line in (folder / "cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        yield [word for word in controllers.split(",") if word], group.lstrip("/")


def _kib(text: str, name: str) -> int:
    return _KIB * sum(int(word) for word in re.findall(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE))


def _first_match(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    assert match, f"{pattern} is not in {text[:200]}"
    return match[1]
