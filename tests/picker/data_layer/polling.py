"""Waits for what nobody announces."""

import asyncio
from collections.abc import Callable
from typing import Final

_LOOK_S: Final = 0.005
_PATIENCE_S: Final = 180.0


async def until(is_so: Callable[[], bool]) -> None:
    """Returns when it is so.

    Raises:
        TimeoutError: It is not, for three minutes.
    """
    async with asyncio.timeout(_PATIENCE_S):
        while not is_so():  # noqa: ASYNC110 - what is looked at announces nothing
            await asyncio.sleep(_LOOK_S)
