"""`kvtier status`: how KVCacheTiers of a cluster are: one on a screen, or a line for each."""

from functools import partial

import click

from kvtier_common import options as common
from kvtier_common.terminal.say import json_document, say, say_whole, wants_colour
from kvtier_operator.cli.inputs import options


@click.command(short_help="Show how a KVCacheTier of a cluster is, on one screen, or list them all.")
@options.optional_name
@options.namespace
@options.all_namespaces
@options.cluster
@click.option("-w", "--watch", is_flag=True, help="Look again and again; Ctrl-C ends it.")
@options.interval
@common.output
def status(  # noqa: PLR0913 - one parameter an option
    *,
    name: str | None,
    namespace: str | None,
    everywhere: bool,
    cluster: options.ClusterChoice,
    watch: bool,
    interval_s: float,
    output: str,
) -> None:
    """Show how the KVCacheTier NAME of a cluster is: conditions, pods, tiers, picker, and what to do next.

    Without NAME a line for each KVCacheTier of the namespace: whether it is ready, why not, its engines, and
    the share of prompt tokens that some tier supplied.

    It reads with your own rights; what you may not read is said in a line. What engines and pickers count
    comes through the API server's proxy (right: get pods/proxy).
    """
    import asyncio  # noqa: PLC0415 - help needs none of it
    from contextlib import suppress  # noqa: PLC0415 - as above

    if name is not None and everywhere:
        raise click.UsageError("a NAME is of one namespace: say which by --namespace, not --all-namespaces")
    if watch and output != "text":
        raise click.UsageError("--watch is for a reader: ask for -o json once, as often as you need it")
    from kvtier_operator.cli.cluster.live import show_resources  # noqa: PLC0415 - as above
    from kvtier_operator.cli.cluster.screen import listing  # noqa: PLC0415 - as above

    shown_s = interval_s if watch else None
    with suppress(KeyboardInterrupt):
        asyncio.run(
            show_resources(listing, cluster, namespace, shown_s, output, everywhere=everywhere)
            if name is None
            else _show_one(name, namespace, cluster, shown_s, output)
        )


async def _show_one(
    name: str, namespace: str | None, cluster: options.ClusterChoice, interval_s: float | None, output: str
) -> None:
    from kvtier_operator.cli.cluster.live import show  # noqa: PLC0415 - as above
    from kvtier_operator.cli.cluster.next_step import next_step  # noqa: PLC0415 - as above
    from kvtier_operator.cli.cluster.screen import status_screen, view_fields  # noqa: PLC0415 - as above
    from kvtier_operator.cli.text import terminal_columns  # noqa: PLC0415 - as above

    colour = output == "text" and wants_colour()
    write = partial(say_whole, end="") if output == "json" else partial(say, end="", colour=colour)
    async with options.open_cluster(cluster, namespace) as (reader, place):

        async def look() -> str:
            view = await reader.view(place, name)
            step = next_step(view)
            if output == "json":
                return json_document(view_fields(view, step)) + "\n"
            return status_screen(view, step, terminal_columns(), colour=colour)

        await show(look, write, interval_s)
