"""Runs a program and lets nothing of it outlive its owner.

`python -m kvtier_operator.runtime.guard GRACE_S PROGRAM ARGS...`

The owner holds the other end of this process's standard input. When the owner closes it, or dies in
whatever way, the guard stops the program (SIGTERM to its group, SIGKILL to everything below after GRACE_S
seconds), removes what it left in /dev/shm and the folder of its sockets, and exits with the program's exit
status. Being the subreaper (prctl(2), PR_SET_CHILD_SUBREAPER), it also catches processes whose parents died,
such as vLLM's engine core. Should the guard itself be killed, the kernel kills the program
(PR_SET_PDEATHSIG).

Standard library only: it must start in milliseconds and never fail to import.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36
_NOT_FOUND = 127  # a shell's exit status for it (POSIX, 2.8.2)
_SOCKETS = "VLLM_RPC_BASE_PATH"  # of vLLM's processes, which leave them there (vllm/envs.py)
_libc = ctypes.CDLL(None, use_errno=True)
_IN_CREATE = 0x100  # inotify(7)
_IN_MOVED_TO = 0x80
_IN_NONBLOCK = os.O_NONBLOCK
_IN_CLOEXEC = os.O_CLOEXEC
_EVENTS_BYTES = 64 * 1024


class ShmLedger:
    """Files of one shared-memory folder that processes of one tree had open or mapped.

    A process that is killed leaves its shared memory behind: vLLM's message queues (hundreds of MiB), its
    offloading region (all of the tier) and semaphores. Their names say nothing about the owner, so the tree
    is asked while it lives: the kernel tells when a file appears, /proc who has it open or mapped.
    """

    def __init__(self, folder: Path = Path("/dev/shm")) -> None:  # noqa: S108 - its files are what this is about
        self._folder = folder
        self._before = self._file_names()
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
        if self._file_names() - self._before - self._seen:
            for pid in pids:
                self._seen |= used_files(pid, self._folder) - self._before

    def remove(self) -> list[str]:
        """Remove what was recorded and is still there; return the names."""
        removed = []
        for name in sorted(self._seen & self._file_names()):
            try:
                (self._folder / name).unlink()
            except OSError:
                continue
            removed.append(name)
        return removed

    def _file_names(self) -> set[str]:
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
    processes: list[int] = []
    pending = [root]
    while pending:
        below = children.get(pending.pop(), [])
        processes += below
        pending += below
    return processes


def used_files(pid: int, folder: Path) -> set[str]:
    """Names directly in `folder` that process `pid` has open or mapped.

    By inode, because a name is not enough: sem_open(3) maps a file under one name and links it to another.
    """
    process = Path("/proc", str(pid))
    used: set[tuple[int, int]] = set()
    try:
        used |= {
            _identity_in_map(line) for line in (process / "maps").read_text().splitlines() if "/" in line
        }
        used |= {_identity(link.stat()) for link in (process / "fd").iterdir() if link.exists()}
    except OSError:  # the process is gone, or on its way
        pass
    return {name for name, identity in _identities(folder) if identity in used}


def _identity_in_map(line: str) -> tuple[int, int]:
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


def main(arguments: list[str]) -> int:
    """Run the program to its end and return its exit status, 128 + signal if one ended it."""
    grace_s, program = float(arguments[0]), arguments[1:]
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    for wanted in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(wanted, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    ledger = ShmLedger()
    with tempfile.TemporaryDirectory(prefix="kvtier-") as sockets:
        try:
            child = subprocess.Popen(  # noqa: S603 - the program is the caller's
                program,
                stdin=subprocess.DEVNULL,
                env={_SOCKETS: sockets} | os.environ,
                process_group=0,
                preexec_fn=_die_with_guard,  # noqa: PLW1509 - no threads here
            )
        except OSError as error:
            sys.stderr.write(f"cannot start {program[0]}: {error.strerror}\n")
            return _NOT_FOUND
        stop_at = _watch(child, wake_read, ledger, grace_s)
        _end(child, ledger, stop_at)
        ledger.remove()
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _die_with_guard() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _watch(child: "subprocess.Popen[bytes]", wake: int, ledger: ShmLedger, grace_s: float) -> float:
    """Wait until the program ends or shall end; return the time (monotonic) until which it may take."""
    poller = select.poll()
    poller.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    poller.register(wake, select.POLLIN)
    if ledger.fileno() >= 0:
        poller.register(ledger.fileno(), select.POLLIN)
    while child.poll() is None:
        for descriptor, _ in poller.poll():
            if descriptor == ledger.fileno():
                ledger.record(descendants(os.getpid()))
            elif descriptor == wake:
                caught = os.read(wake, 64)
                if signal.SIGTERM in caught or signal.SIGINT in caught:
                    return time.monotonic() + grace_s
            elif not os.read(descriptor, 64):
                return time.monotonic() + grace_s
    return time.monotonic()


def _end(child: "subprocess.Popen[bytes]", ledger: ShmLedger, stop_at: float) -> None:
    """End every process below this one: politely until `stop_at`, then by SIGKILL until none is left."""
    ledger.record(descendants(os.getpid()))
    _signal(os.killpg, child.pid, signal.SIGTERM)
    try:
        child.wait(timeout=max(0.0, stop_at - time.monotonic()))
    except subprocess.TimeoutExpired:
        ledger.record(descendants(os.getpid()))
    while below := descendants(os.getpid()):
        for pid in below:
            _signal(os.kill, pid, signal.SIGKILL)
        # One is awaited at a time, because what forked meanwhile must be killed before it is awaited.
        if child.returncode is None:
            child.wait()
        else:
            os.waitpid(-1, 0)
    child.wait()


def _signal(send: Callable[[int, int], None], target: int, number: signal.Signals) -> None:
    try:
        send(target, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
