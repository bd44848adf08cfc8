"""`kvtier status`: how one KVCacheTier of a cluster is, on one screen."""

from typing import TYPE_CHECKING

import click

from kvtier_common import options as common
from kvtier_common.terminal.say import say, say_json, wants_colour
from kvtier_operator.cli.inputs import options

if TYPE_CHECKING:
    from kvtier_operator.cli.cluster.resource import ResourceView


@click.command(short_help="Show how a KVCacheTier of a cluster is, on one screen.")
@click.argument("name", callback=options.resource_name, shell_complete=options.resource_names)
@options.namespace
@options.context
@common.output
def status(name: str, namespace: str | None, context: str | None, output: str) -> None:
    """Show how the KVCacheTier NAME of a cluster is: conditions, pods, tiers, picker, and what to do next.

    It reads with your own rights; what you may not read is said in a line. What engines and pickers count
    comes through the API server's proxy (right: get pods/proxy).
    """
    import asyncio  # noqa: PLC0415 - help needs none of it

    from kvtier_operator.cli.cluster.next_step import next_step  # noqa: PLC0415 - as above
    from kvtier_operator.cli.cluster.screen import status_screen, view_fields  # noqa: PLC0415 - as above
    from kvtier_operator.cli.text import terminal_columns  # noqa: PLC0415 - as above

    view = asyncio.run(_view(name, namespace, context))
    step = next_step(view)
    if output == "json":
        say_json(view_fields(view, step))
    else:
        colour = wants_colour()
        say(status_screen(view, step, terminal_columns(), colour=colour), end="", colour=colour)


async def _view(name: str, namespace: str | None, context: str | None) -> "ResourceView":
    from datetime import UTC, datetime  # noqa: PLC0415 - as above

    from kvtier_operator.cli.cluster.resource import resource_view  # noqa: PLC0415 - as above

    async with options.open_cluster(context, namespace) as (reader, place):
        seen = await reader.resource(place, name)
    return resource_view(seen, datetime.now(UTC))
