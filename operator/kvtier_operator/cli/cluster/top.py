"""`kvtier top`: what the tiers of all KVCacheTiers do, again and again."""

import sys
from functools import partial

import click

from kvtier_common import options as common
from kvtier_common.terminal.say import say, say_whole
from kvtier_operator.cli.inputs import options


@click.command(short_help="Show what the tiers of all KVCacheTiers do, refreshed.")
@options.namespace
@options.all_namespaces
@options.cluster
@options.interval
@click.option("--once", is_flag=True, help="Look once; so it does where it writes to no terminal.")
@common.output
def top(  # noqa: PLR0913 - one parameter an option
    *,
    namespace: str | None,
    everywhere: bool,
    cluster: options.ClusterChoice,
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
    with suppress(KeyboardInterrupt):
        asyncio.run(_top(namespace, cluster, interval_s if is_live else None, output, everywhere=everywhere))


async def _top(
    namespace: str | None,
    cluster: options.ClusterChoice,
    interval_s: float | None,
    output: str,
    *,
    everywhere: bool,
) -> None:
    from kvtier_operator.cli.cluster.live import show  # noqa: PLC0415 - as above
    from kvtier_operator.cli.cluster.screen import overview, resources_json  # noqa: PLC0415 - as above
    from kvtier_operator.cli.text import terminal_columns  # noqa: PLC0415 - as above

    write = partial(say_whole if output == "json" else say, end="")
    async with options.open_cluster(cluster, namespace) as (reader, place):

        async def look() -> str:
            views = await reader.views(None if everywhere else place)
            return resources_json(views) if output == "json" else overview(views, terminal_columns())

        await show(look, write, interval_s)
