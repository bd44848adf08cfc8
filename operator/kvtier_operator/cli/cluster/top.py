"""`kvtier top`: what the tiers of all KVCacheTiers do, again and again."""

import sys

import click

from kvtier_common import options as common
from kvtier_operator.cli.inputs import options


@click.command(short_help="Show what the tiers of all KVCacheTiers do, refreshed.")
@options.namespace
@options.all_namespaces
@options.cluster
@options.interval
@click.option("--once", is_flag=True, help="Look once; so it does where it writes to no terminal.")
@click.option(
    "--by",
    type=click.Choice(["tier", "share"]),
    default="tier",
    show_default=True,
    help="A line for each resource, with its tiers; or for each of its tenants, with what it holds.",
)
@common.output
def top(  # noqa: PLR0913 - one parameter an option
    *,
    namespace: str | None,
    everywhere: bool,
    cluster: options.ClusterChoice,
    interval_s: float,
    once: bool,
    by: str,
    output: str,
) -> None:
    """Show what the tiers of all KVCacheTiers do: hits, fill, and what each saved since engines started.

    Ends on Ctrl-C. It reads with your own rights; what you may not read is said in a line.
    """
    import asyncio  # noqa: PLC0415 - help needs none of it
    from contextlib import suppress  # noqa: PLC0415 - as above

    from kvtier_operator.cli.cluster.live import show_resources  # noqa: PLC0415 - as above
    from kvtier_operator.cli.cluster.screen import overview  # noqa: PLC0415 - as above

    is_live = sys.stdout.isatty() and output == "text" and not once
    shown_s = interval_s if is_live else None
    with suppress(KeyboardInterrupt):
        asyncio.run(show_resources(overview, cluster, namespace, shown_s, output, everywhere=everywhere))
        every_s = interval_s if is_live else None
        asyncio.run(_top(namespace, cluster, every_s, by, output, everywhere=everywhere))


async def _top(  # noqa: PLR0913 - as many options
    namespace: str | None,
    cluster: options.ClusterChoice,
    interval_s: float | None,
    by: str,
    output: str,
    *,
    everywhere: bool,
) -> None:
    from kvtier_operator.cli.cluster.live import show  # noqa: PLC0415 - as above
    from kvtier_operator.cli.cluster.screen import (  # noqa: PLC0415 - as above
        overview,
        overview_by_share,
        resources_json,
    )
    from kvtier_operator.cli.text import terminal_columns  # noqa: PLC0415 - as above

    write = partial(say_whole if output == "json" else say, end="")
    async with options.open_cluster(cluster, namespace) as (reader, place):

        async def look() -> str:
            views = await reader.views(None if everywhere else place)
            if output == "json":
                return resources_json(views)
            table = overview_by_share if by == "share" else overview
            return table(views, terminal_columns())

        await show(look, write, interval_s)
