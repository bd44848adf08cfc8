"""Takes a long message step by step, so that the event loop answers requests in between."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import closing


async def in_steps(work: Generator[int], count: Callable[[int], None] = lambda _: None) -> None:
    """Runs work to its end, or closes it at once.

    Args:
        work: Yields after each step how much it was.
        count: Is told so; may end the work by what it raises.
    """
    with closing(work):
        for done in work:
            count(done)
            await asyncio.sleep(0)
