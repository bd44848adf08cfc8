"""Shows what a cluster says, once or again and again."""

import asyncio
from collections.abc import Awaitable, Callable

import click

from kvtier_common.errors import MomentaryError


async def show(
    look: Callable[[], Awaitable[str]], write: Callable[[str], None], interval_s: float | None
) -> None:
    """Writes what a look has found.

    With an interval again and again on an empty screen, until somebody ends it; a cluster that does not
    answer for a moment is then a line in its place.
    """
    while interval_s is not None:
        try:
            text = await look()
        except MomentaryError as error:
            text = f"{error}\n"
        click.clear()
        write(text)
        await asyncio.sleep(interval_s)
    write(await look())
