"""Waits until a process answers, or says why it never will."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.runtime.process.excerpt import relevant_lines
from kvtier_operator.runtime.process.health import answers_ok
from kvtier_operator.runtime.process.supervised import SupervisedProcess

_POLL_INTERVAL_S = 0.25


async def wait_ready(process: SupervisedProcess, health_url: str, timeout_s: float) -> None:
    """Return when `health_url` answers 200.

    Args:
        process: The process behind it.
        health_url: What to ask.
        timeout_s: How long it may take.

    Raises:
        RuntimeFailedError: The process ended, or took too long; with its log's relevant lines.
    """
    await wait_until(process, partial(answers_ok, health_url), timeout_s)


async def wait_until(
    process: SupervisedProcess, is_ready: Callable[[], Awaitable[bool]], timeout_s: float
) -> None:
    """Return when the process says that it is ready.

    Args:
        process: The process.
        is_ready: Asks it.
        timeout_s: How long it may take.

    Raises:
        RuntimeFailedError: The process ended, or took too long; with its log's relevant lines.
    """
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
