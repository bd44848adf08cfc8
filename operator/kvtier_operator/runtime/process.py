"""Processes that never outlive their owner: started, watched, stopped, and what their logs say."""

import asyncio
import errno
import os
import re
import socket
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Self

from aiohttp import ClientError, ClientSession, ClientTimeout

from kvtier_operator.errors import RuntimeFailedError

LOOPBACK: Final = "127.0.0.1"


# More than anything here asks for at a time.
_MOST_HELD: Final = 256
_held: Final[deque[int]] = deque()


def free_ports(count: int, host: str) -> tuple[int, ...]:
    """`count` different ports of `host` for programs that are started later and cannot choose their own.

    They stay bound here, without anybody listening, for as long as this process lives or until it has asked
    for many others: the kernel gives them to nobody who does not ask for them by number. A program that does
    gets them, as long as it sets SO_REUSEADDR, as servers do (Linux, socket(7)).
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = []
    for _ in range(count):
        with socket.socket(family) as bound:
            bound.bind((host, 0))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            ports.append(int(bound.getsockname()[1]))
            _held.append(bound.detach())
    while len(_held) > _MOST_HELD:
        os.close(_held.popleft())
    return tuple(ports)


def numeric(host: str) -> str:
    """The address of a host's name; an address stays as it is."""
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise RuntimeFailedError(f"cannot listen on {host}: {error.strerror}") from error


def require_free(host: str, port: int) -> None:
    """Raise a RuntimeFailedError unless a server could listen on `host`:`port` now."""
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise RuntimeFailedError(
                f"port {port} is in use on {host}: stop what listens there or choose another with --port"
            ) from error
        raise RuntimeFailedError(f"cannot listen on {host}:{port}: {error.strerror}") from error


_TIMEOUT_S: Final = 5.0
_OK: Final = 200
_CHECK: Final = "/grpc.health.v1.Health/Check"
# grpc.health.v1, as bytes: HealthCheckRequest{service: "readiness"}, HealthCheckResponse{status: SERVING}
_READINESS: Final = b"\x0a\x09readiness"
_SERVING: Final = b"\x08\x01"


async def envoy_is_ready(admin: Path) -> bool:
    """Whether Envoy, whose administration's address is in the file, says so."""
    try:
        address = admin.read_text(encoding="utf-8")  # noqa: ASYNC240 - a few bytes on this machine
    except FileNotFoundError:
        return False
    return await answers_ok(f"http://{address}/ready")


async def answers_ok(url: str) -> bool:
    """Whether there is an answer that says OK."""
    timeout = ClientTimeout(total=_TIMEOUT_S)
    try:
        async with (
            ClientSession(timeout=timeout) as session,
            session.get(url, allow_redirects=False) as answer,
        ):
            return answer.status == _OK
    except (ClientError, TimeoutError):
        return False


async def picker_is_ready(port: int) -> bool:
    """Whether the picker, whose health service listens on the port of loopback, says so."""
    import grpc.aio  # noqa: PLC0415 - only where there is a picker

    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            answer = await channel.unary_unary(_CHECK, bytes, bytes)(_READINESS, timeout=_TIMEOUT_S)
        except grpc.aio.AioRpcError:
            return False
        return answer == _SERVING


# vLLM's prefixes: `(EngineCore pid=12) ERROR 11-20 10:11:12 [core.py:88] `.
_PROCESS: Final = re.compile(r"^(\([\w ]+? pid=\d+\)\s?)+")
_LOG_LEVEL: Final = re.compile(r"^(DEBUG|INFO|WARNING|ERROR|CRITICAL) [\d-]+ [\d:.]+ \[[^\]]+\] ?")
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;]*m")
_EXCEPTION: Final = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Timeout)\b(?:: .+|:?$)"
)
_USAGE: Final = re.compile(r"^\S+: error: ")
_KILLED: Final = re.compile(
    r"out of memory|Killed|Bus error|Segmentation fault|No space left on device", re.IGNORECASE
)
# Said by the processes around the one that failed, never the cause.
_CONSEQUENCE: Final = re.compile(
    r"Engine core initialization failed|WorkerProc initialization failed|See root cause above|"
    r"please check the stack trace above|"
    r"^(?:\w+\.)*(?:EngineDeadError|CancelledError|KeyboardInterrupt|SystemExit|EOFError|BrokenPipeError)"
)
_FOLLOWING_LINES: Final = 4


def relevant_lines(log: str, *, limit: int = 8) -> list[str]:
    """Pick from `log` the root error, without traceback; the last lines where no error can be found."""
    lines = [_bare(line) for line in log.splitlines()]
    lines = [line for line in lines if line.strip()]
    causes = [number for number, line in enumerate(lines) if _is_cause(line)]
    if not causes:
        errors = [_bare(line) for line in log.splitlines() if re.search(r"\b(ERROR|CRITICAL)\b", line)]
        lines_of_errors = [line for line in errors if line.strip() and not line.startswith(" ")] or lines
        return [*dict.fromkeys(lines_of_errors)][-limit:]
    picked: list[str] = []
    for number in causes:
        picked.append(lines[number])
        picked += _continuation(lines, number)
    return [*dict.fromkeys(picked)][:limit]


def _bare(line: str) -> str:
    line = _PROCESS.sub("", _ESCAPES.sub("", line))
    return _LOG_LEVEL.sub("", line).rstrip()


def _is_cause(line: str) -> bool:
    if _CONSEQUENCE.search(line):
        return False
    return bool(
        _EXCEPTION.match(line) or _USAGE.match(line) or (_KILLED.search(line) and not line.startswith(" "))
    )


def _continuation(lines: list[str], number: int) -> list[str]:
    """Indented lines after an exception belong to its message, as pydantic writes them."""
    following: list[str] = []
    for line in lines[number + 1 : number + 1 + _FOLLOWING_LINES]:
        if not line.startswith("  ") or line.lstrip().startswith(("File ", "For further information")):
            break
        following.append(line)
    return following


GUARD: Final = "kvtier_operator.runtime.guard"
# What the guard may need beyond the grace period, to kill and to await what is left.
_KILL_BOUND_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Command:
    """What to run."""

    name: str  # what a person calls it, such as `engine-0`
    argv: tuple[str, ...]  # program and arguments
    env: Mapping[str, str] = field(default_factory=dict)  # variables on top of this process's own environment
    not_inherited: tuple[str, ...] = ()  # prefixes of this process's variables that it does not get
    grace_s: float = 20.0  # seconds between SIGTERM and SIGKILL when it is stopped

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """All its variables, where this process has `inherited`."""
        kept = {name: value for name, value in inherited.items() if not name.startswith(self.not_inherited)}
        return kept | dict(self.env)


class SupervisedProcess:
    """A running `Command` under its guard; use it as an asynchronous context."""

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
        return self._running.returncode

    @property
    def guard_pid(self) -> int:
        """Process id of the guard; everything that was started is below it."""
        return self._running.pid

    def log(self) -> str:
        """What it has written so far."""
        return self.log_path.read_text(errors="replace")

    async def wait(self) -> int:
        """Wait until it has ended, nothing of it runs any more and its shared memory is gone."""
        return await self._running.wait()

    async def stop(self) -> None:
        """End it: SIGTERM, SIGKILL after the grace period; returns when nothing of it is left."""
        process = self._running
        if process.stdin is not None:
            process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), self.command.grace_s + _KILL_BOUND_S)
            return
        process.kill()
        await process.wait()

    @property
    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeFailedError(f"{self.command.name}: not started")
        return self._process


_POLL_INTERVAL_S = 0.25


async def wait_ready(process: SupervisedProcess, health_url: str, timeout_s: float) -> None:
    """Return when `health_url` answers 200; raises as `wait_until`."""
    await wait_until(process, partial(answers_ok, health_url), timeout_s)


async def wait_until(
    process: SupervisedProcess, is_ready: Callable[[], Awaitable[bool]], timeout_s: float
) -> None:
    """Return when the process is ready; raises, with its log's relevant lines, where it is not in time."""
    died = asyncio.create_task(process.wait())
    answers = asyncio.create_task(_until(is_ready))
    try:
        done, _ = await asyncio.wait({died, answers}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (died, answers):
            task.cancel()
    if died in done:
        raise death(process, "while it was starting")
    if answers not in done:
        raise RuntimeFailedError(
            _with_log(process, f"{process.command.name}: not ready after {timeout_s:.0f} s")
        )


def death(process: SupervisedProcess, when: str) -> RuntimeFailedError:
    """The error for a process that ended by itself; `when` completes the sentence."""
    return RuntimeFailedError(
        _with_log(process, f"{process.command.name} ended with exit status {process.returncode} {when}")
    )


async def _until(is_ready: Callable[[], Awaitable[bool]]) -> None:
    while True:
        if await is_ready():
            return
        await asyncio.sleep(_POLL_INTERVAL_S)


def _with_log(process: SupervisedProcess, what: str) -> str:
    excerpt = relevant_lines(process.log()) or ["(nothing)"]
    return "\n".join(
        [f"{what}; its log says:", *(f"  {line}" for line in excerpt), f"whole log: {process.log_path}"]
    )
