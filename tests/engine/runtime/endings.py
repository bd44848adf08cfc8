"""What a run leaves behind: waits for the end of any process by the kernel's own notice, and for logs."""

import asyncio
import os
import select
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

SHM = Path("/dev/shm")  # noqa: S108 - what lies there is the question
TIMEOUT_S = 120.0


class Watched:
    """Processes to be gone later. Made while they live, so that a reused process id cannot fool it."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._stack = ExitStack()
        self._descriptors: dict[int, int] = {}
        for pid in pids:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            self._stack.callback(os.close, descriptor)
            self._descriptors[descriptor] = pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __len__(self) -> int:
        return len(self._descriptors)

    def alive_after(self, timeout_s: float) -> dict[int, str]:
        """Command lines of those that still run when all have ended or `timeout_s` has passed."""
        waiting = dict(self._descriptors)
        poller = select.poll()
        for descriptor in waiting:
            poller.register(descriptor, select.POLLIN)
        while waiting:
            ended = poller.poll(timeout_s * 1000)
            if not ended:
                break
            for descriptor, _ in ended:
                poller.unregister(descriptor)
                del waiting[descriptor]
        return {pid: _command_line(pid) for pid in waiting.values()}


def present(path: Path) -> bool:
    """Whether the file is there."""
    return path.exists()


async def log_line(path: Path, start: str, timeout_s: float = TIMEOUT_S) -> str:
    """The first line of the log that starts so, once it is there."""

    async def look() -> str:
        while (line := _find_line(path, start)) is None:  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.02)
        return line

    return await asyncio.wait_for(look(), timeout_s)


def _find_line(path: Path, start: str) -> str | None:
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return next((line.rstrip() for line in lines if line.startswith(start) and line.endswith("\n")), None)


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return "?"
