"""Finds out which files of /dev/shm a process tree made, so that exactly those can be removed after it.

A process that is killed leaves its shared memory behind: vLLM's message queues (hundreds of MiB), its CPU
offloading region (all of the tier) and semaphores. Their names say nothing about the owner, so the tree is
asked while it lives: the kernel tells when a file appears, and /proc tells who has it open or mapped.
Standard library only: the guard runs on it.
"""

import ctypes
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_IN_CREATE = 0x100  # inotify(7)
_IN_MOVED_TO = 0x80
_IN_NONBLOCK = os.O_NONBLOCK
_IN_CLOEXEC = os.O_CLOEXEC
_EVENTS_BYTES = 64 * 1024


class ShmLedger:
    """Files of one shared-memory folder that processes of one tree had open or mapped.

    Args:
        folder: The folder, /dev/shm.
    """

    def __init__(self, folder: Path = Path("/dev/shm")) -> None:  # noqa: S108 - its files are what this is about
        self._folder = folder
        self._before = self._present()
        self._seen: set[str] = set()
        libc = ctypes.CDLL(None, use_errno=True)
        self._inotify = libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
        if self._inotify >= 0:
            libc.inotify_add_watch(self._inotify, os.fsencode(folder), _IN_CREATE | _IN_MOVED_TO)

    def fileno(self) -> int:
        """Readable when a file has appeared; below 0 where the kernel has no watch left to give."""
        return int(self._inotify)

    def record(self, pids: Iterable[int]) -> None:
        """Remember the new files of the folder that any of `pids` has open or mapped now."""
        if self._inotify >= 0:
            try:
                while os.read(self._inotify, _EVENTS_BYTES):
                    pass
            except BlockingIOError:
                pass
        if self._present() - self._before - self._seen:
            for pid in pids:
                self._seen |= used_files(pid, self._folder) - self._before

    def remove(self) -> list[str]:
        """Remove what was recorded and is still there; return the names."""
        removed = []
        for name in sorted(self._seen & self._present()):
            try:
                (self._folder / name).unlink()
            except OSError:
                continue
            removed.append(name)
        return removed

    def _present(self) -> set[str]:
        try:
            return {path.name for path in self._folder.iterdir()}
        except OSError:
            return set()


def descendants(root: int) -> list[int]:
    """Process ids below `root`, from /proc; empty where there are none."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text(errors="replace")
        except OSError:
            continue
        parent = int(stat.rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    pending = [root]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def used_files(pid: int, folder: Path) -> set[str]:
    """Names directly in `folder` that process `pid` has open or mapped.

    By inode, because a name is not enough: sem_open(3) maps a file under one name and links it to another.
    """
    process = Path("/proc", str(pid))
    used: set[tuple[int, int]] = set()
    try:
        used |= {_mapped(line) for line in (process / "maps").read_text().splitlines() if "/" in line}
        used |= {_identity(link.stat()) for link in (process / "fd").iterdir() if link.exists()}
    except OSError:  # the process is gone, or on its way
        pass
    return {name for name, identity in _identities(folder) if identity in used}


def _mapped(line: str) -> tuple[int, int]:
    """Device and inode of one line of /proc/PID/maps (proc(5))."""
    _, _, _, device, inode, _ = line.split(maxsplit=5)
    major, minor = device.split(":")
    return os.makedev(int(major, 16), int(minor, 16)), int(inode)


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def _identities(folder: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    for path in entries:
        try:
            yield path.name, _identity(path.stat())
        except OSError:
            continue
