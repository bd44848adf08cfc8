"""Ends asynchronous work on Ctrl-C and SIGTERM, once, in order."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

INTERRUPTED: Final = 130  # a shell's exit status for Ctrl-C: 128 + SIGINT

Result = TypeVar("Result")


async def until_signalled(work: Coroutine[Any, Any, Result]) -> Result | None:
    """Do `work` to its end; on SIGINT or SIGTERM cancel it, let it clean up, and return None.

    Signals that come while it cleans up change nothing: each step of a clean-up has its own bound.
    """
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    signalled = False

    def stop() -> None:
        nonlocal signalled
        if not signalled:
            signalled = True
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        return await task
    except asyncio.CancelledError:
        if signalled:
            return None
        raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
