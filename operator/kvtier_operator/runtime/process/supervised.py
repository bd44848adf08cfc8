"""A process with a log, that ends with its owner whatever happens to either."""

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from kvtier_operator.errors import RuntimeFailedError

GUARD: Final = "kvtier_operator.runtime.process.guard"
# What the guard may need beyond the grace period, to kill and to await what is left.
_KILL_BOUND_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Command:
    """What to run.

    Attributes:
        name: What a person calls it, such as `engine-0`.
        argv: Program and arguments.
        env: Variables on top of this process's own environment.
        not_inherited: Prefixes of this process's variables that it does not get.
        grace_s: Seconds between SIGTERM and SIGKILL when it is stopped.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    not_inherited: tuple[str, ...] = ()
    grace_s: float = 20.0

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """All its variables, where this process has `inherited`."""
        kept = {name: value for name, value in inherited.items() if not name.startswith(self.not_inherited)}
        return kept | dict(self.env)


class SupervisedProcess:
    """A running `Command` under its guard; use it as an asynchronous context.

    Args:
        command: What to run.
        log_path: File that gets its standard output and error, from the start.

    Raises:
        RuntimeFailedError: On entering, when the program cannot be started.
    """

    def __init__(self, command: Command, log_path: Path) -> None:
        self.command = command
        self.log_path = log_path
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("wb") as log:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-P", "-m", GUARD, str(self.command.grace_s), *self.command.argv,
                    stdin=asyncio.subprocess.PIPE, stdout=log, stderr=asyncio.subprocess.STDOUT,
                    env=self.command.environment(os.environ), start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise RuntimeFailedError(f"{self.command.name}: cannot start: {error}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def returncode(self) -> int | None:
        """Exit status, 128 + signal if a signal ended it; None while it runs."""
        return self._started.returncode

    @property
    def guard_pid(self) -> int:
        """Process id of the guard; everything that was started is below it."""
        return self._started.pid

    def log(self) -> str:
        """What it has written so far."""
        return self.log_path.read_text(errors="replace")

    async def wait(self) -> int:
        """Wait until it has ended, nothing of it runs any more and its shared memory is gone."""
        return await self._started.wait()

    async def stop(self) -> None:
        """End it: SIGTERM, SIGKILL after the grace period; returns when nothing of it is left."""
        process = self._started
        if process.stdin is not None:
            process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), self.command.grace_s + _KILL_BOUND_S)
            return
        process.kill()
        await process.wait()

    @property
    def _started(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeFailedError(f"{self.command.name}: not started")
        return self._process
