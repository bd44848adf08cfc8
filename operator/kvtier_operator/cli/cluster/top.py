"""`kvtier top`: what the tiers of all KVCacheTiers do, again and again."""

import sys
from typing import TYPE_CHECKING, Final

import click

from kvtier_common import options as common
from kvtier_common.terminal.say import json_document, say, say_whole
from kvtier_operator.cli.inputs import options

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from kvtier_operator.cli.cluster.reader import Reader
    from kvtier_operator.cli.cluster.resource import ResourceView

_INTERVAL_S: Final = 5.0


@click.command(short_help="Show what the tiers of all KVCacheTiers do, refreshed.")
@options.namespace
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Of all namespaces.")
@options.context
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=1),
    default=_INTERVAL_S,
    show_default=True,
    help="Seconds from one look to the next.",
)
@click.option("--once", is_flag=True, help="Look once; so it does where it writes to no terminal.")
@common.output
def top(  # noqa: PLR0913 - one parameter an option
    *,
    namespace: str | None,
    everywhere: bool,
    context: str | None,
    interval_s: float,
    once: bool,
    output: str,
) -> None:
    """Show what the tiers of all KVCacheTiers do: hits, fill, and what each saved since engines started.

    Ends on Ctrl-C. It reads with your own rights; what you may not read is said in a line.
    """
    import asyncio  # noqa: PLC0415 - help needs none of it
    from contextlib import suppress  # noqa: PLC0415 - as above

    is_live = sys.stdout.isatty() and output == "text" and not once
    opening = options.open_cluster(context, namespace)
    with suppress(KeyboardInterrupt):
        asyncio.run(_show(opening, interval_s if is_live else None, output, everywhere=everywhere))


async def _show(
    opening: "AbstractAsyncContextManager[tuple[Reader, str]]",
    interval_s: float | None,
    output: str,
    *,
    everywhere: bool,
) -> None:
    """Shows once, or for as long as nobody ends it where there is an interval."""
    import asyncio  # noqa: PLC0415 - as above
    from datetime import UTC, datetime  # noqa: PLC0415 - as above

    from kvtier_common.errors import MomentaryError  # noqa: PLC0415 - as above
    from kvtier_operator.cli.cluster.resource import resource_view  # noqa: PLC0415 - as above

    show = say_whole if output == "json" else say
    async with opening as (reader, place):
        while True:
            try:
                seen = await reader.resources(None if everywhere else place)
            except MomentaryError as error:
                if interval_s is None:
                    raise
                shown = f"{error}\n"
            else:
                shown = _screen([resource_view(one, datetime.now(UTC)) for one in seen], output)
            if interval_s is None:
                show(shown, end="")
                return
            click.clear()
            show(shown, end="")
            await asyncio.sleep(interval_s)


def _screen(views: list["ResourceView"], output: str) -> str:
    from kvtier_operator.cli.cluster.next_step import next_step  # noqa: PLC0415 - as above
    from kvtier_operator.cli.cluster.screen import overview, view_fields  # noqa: PLC0415 - as above
    from kvtier_operator.cli.text import terminal_columns  # noqa: PLC0415 - as above

    if output == "json":
        fields = [view_fields(view, next_step(view)) for view in views]
        return json_document(fields) + "\n"
    return overview(views, terminal_columns())
