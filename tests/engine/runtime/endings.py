"""What a run leaves behind: waits for the end of any process by the kernel's own notice."""

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


def waits(pid: int) -> bool:
    """Whether a process rests in poll(2): it has seen to everything that it was told of before."""
    return "poll" in Path(f"/proc/{pid}/wchan").read_text()


class Announcement:
    """A line that a program writes into a FIFO once it is ready: nobody looks at a file again and again."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "announcement"
        os.mkfifo(self.path)
        # open for both, or opening would wait for the other end
        self._descriptor = os.open(self.path, os.O_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    async def line(self) -> str:
        """The line, once it has been written; fails after a while."""
        return await asyncio.to_thread(self.wait)

    def wait(self) -> str:
        """The same for a test that is not asynchronous."""
        ready, _, _ = select.select([self._descriptor], [], [], TIMEOUT_S)
        assert ready, f"nothing was announced in {TIMEOUT_S:.0f} s"
        return os.read(self._descriptor, select.PIPE_BUF).decode().rstrip("\n")


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return "?"
