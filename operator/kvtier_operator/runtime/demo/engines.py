"""Asks engines only as long as they live."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from kvtier_operator.runtime.session import Session

Result = TypeVar("Result")


async def unless_an_engine_fails(asking: Coroutine[Any, Any, Result], sessions: Sequence[Session]) -> Result:
    """The result of `asking`, unless an engine ends before.

    Raises:
        RuntimeFailedError: An engine ended; the error says why.
    """
    work = asyncio.ensure_future(asking)
    failures = [asyncio.create_task(session.failure()) for session in sessions]
    try:
        done, _ = await asyncio.wait({work, *failures}, return_when=asyncio.FIRST_COMPLETED)
        for failure in failures:
            if failure in done:
                raise failure.result()
        return await work
    finally:
        for task in (work, *failures):
            task.cancel()
        await asyncio.gather(work, *failures, return_exceptions=True)
