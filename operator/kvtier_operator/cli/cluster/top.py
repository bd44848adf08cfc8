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
    from kvtier_operator.cli.cluster.screen import overview, overview_by_share  # noqa: PLC0415 - as above

    is_live = sys.stdout.isatty() and output == "text" and not once
    shown_s = interval_s if is_live else None
    table = overview_by_share if by == "share" else overview
    with suppress(KeyboardInterrupt):
        asyncio.run(show_resources(table, cluster, namespace, shown_s, output, everywhere=everywhere))
