"""How the disk tier talks to the kernel: the best way that is allowed here, and why not a better one."""

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_connector.core.disk.io.engine import EngineUnavailableError, IOEngine
from kvtier_connector.core.disk.io.threads import ThreadEngine
from kvtier_connector.core.disk.io.uring import UringEngine

_STATFS_BYTES: Final = 256  # `struct statfs` takes 120; its first member, a long, is the kind (statfs(2))
_KINDS: Final = {
    0xEF53: "ext4",
    0x58465342: "XFS",
    0x9123683E: "Btrfs",
    0xF2F52010: "F2FS",
    0x01021994: "tmpfs",
}
"""Those that are local and know how not to wait; the numbers are linux/magic.h's."""
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
ENGINES: Final[dict[str, Callable[[int], IOEngine]]] = {
    UringEngine.name: UringEngine,
    ThreadEngine.name: ThreadEngine,
}
"""By name, the best first: each makes an engine of a depth, or raises EngineUnavailableError."""
_LEAST_DEPTH, _MOST_DEPTH = 32, 128
"""NVMe devices reach their bandwidth with some 16 to 64 transfers. More of small blocks give a virtual disk,
which tells of many at a time, something to do until it is asked for the next."""
_MOST_BYTES: Final = 64 << 20
"""In the kernel's hands: a read that comes behind so many bytes waits for some 20 ms."""


def submission_obstacle(folder: Path) -> str:
    """Return why a submission to this folder's files may wait for the device; empty if it does not.

    io_uring begins a transfer within the system call that submits it, and relies on the file system to say
    where that would wait. FUSE, for one, says it can and then waits for its server (seen on Linux 6.18): a
    server that hangs would hang the thread that submits, and with it every deadline. Raises OSError: the
    folder cannot be looked at.
    """
    answer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _LIBC.statfs(os.fsencode(folder), answer):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))
    kind = ctypes.c_ulong.from_buffer(answer).value
    if kind in _KINDS:
        return ""
    known = ", ".join(_KINDS.values())
    return f"its submissions may wait for this file system, kind {kind:#x}, which is not one of {known}"


@dataclass(frozen=True, slots=True)
class EngineReport:
    """What is used, and why."""

    got: str  # the engine's name
    depth: int  # how many transfers it keeps in the kernel's hands
    why: str  # for each better one, why not; empty when there was none

    def __str__(self) -> str:
        return f"{self.got}, {self.depth} transfers at a time" + (f" ({self.why})" if self.why else "")


def depth_for(block_bytes: int) -> int:
    """Return how many transfers of a size a disk should have at a time."""
    return max(_LEAST_DEPTH, min(_MOST_DEPTH, _MOST_BYTES // block_bytes))


def open_engine(
    depth: int, *, folder: Path | None = None, prefer: str | None = None
) -> tuple[IOEngine, EngineReport]:
    """Open the best engine that the kernel allows for a folder's files, or that of a preferred name.

    Raises ValueError: there is none of that name; OSError: the folder cannot be looked at;
    EngineUnavailableError: none is to be had.
    """
    if prefer is not None and prefer not in ENGINES:
        raise ValueError(f"no engine is called {prefer!r}; there are {', '.join(ENGINES)}")
    obstacle = submission_obstacle(folder) if folder else ""
    why = list[str]()
    for name in sorted(ENGINES, key=lambda name: name != prefer):  # stable: the others keep their order
        if name == UringEngine.name and obstacle:
            why.append(f"{name}: {obstacle}")
            continue
        try:
            engine = ENGINES[name](depth)
        except EngineUnavailableError as error:
            why.append(f"{name}: {error}")
        else:
            return engine, EngineReport(name, engine.depth, "; ".join(why))
    raise EngineUnavailableError(f"no way to reach the disk: {'; '.join(why)}")
