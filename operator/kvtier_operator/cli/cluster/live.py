"""Shows what a cluster says, once or again and again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from kvtier_common.errors import MomentaryError
from kvtier_common.terminal.say import say, say_whole
from kvtier_operator.cli.inputs import options

if TYPE_CHECKING:
    from kvtier_operator.cli.cluster.resource import ResourceView


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


async def show_resources(  # noqa: PLR0913 - as many options
    table: "Callable[[Sequence[ResourceView], int], str]",
    cluster: options.ClusterChoice,
    namespace: str | None,
    interval_s: float | None,
    output: str,
    *,
    everywhere: bool,
) -> None:
    """Shows all resources of a namespace, or of a cluster: as a table for so many columns, or as JSON."""
    from kvtier_operator.cli.cluster.screen import resources_json  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.cli.text import terminal_columns  # noqa: PLC0415 - as above

    write = partial(say_whole if output == "json" else say, end="")
    async with options.open_cluster(cluster, namespace) as (reader, place):

        async def look() -> str:
            views = await reader.views(None if everywhere else place)
            return resources_json(views) if output == "json" else table(views, terminal_columns())

        await show(look, write, interval_s)
