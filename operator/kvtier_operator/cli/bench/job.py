"""`kvtier bench job`: the command line. What it does is loaded when it is done: help needs no planner."""

import sys
from typing import Final

import click

from kvtier_common.terminal.say import say, say_whole
from kvtier_connector.bench.choices import (
    COMPARED_PARTS,
    DEMO,
    EVERY_SIDE,
    SHAPES,
    SIDES,
    TURNS,
    names_of,
    names_shown,
)
from kvtier_operator.cli.inputs import options as of_all
from kvtier_operator.cli.main import EXIT_REJECTED

_DEADLINE_S: Final = 7200


@click.command(short_help="Print a Kubernetes Job that measures on a node.")
@of_all.filenames
@of_all.model_config
@of_all.hub
@of_all.images
@click.option(
    "-n", "--namespace", callback=of_all.namespace_name, help="Of the Job; by default the resource's."
)
@click.option(
    "--only",
    multiple=True,
    callback=names_of(COMPARED_PARTS),
    metavar=names_shown(COMPARED_PARTS),
    help="Leave out the other.",
)
@click.option(
    "--shape",
    type=click.Choice([*SHAPES]),
    help=f"Sizes of a random model; by default the resource's model's, on a CPU {DEMO}.",
)
@click.option(
    "--sides",
    multiple=True,
    callback=names_of(EVERY_SIDE),
    metavar="SIDE,...",
    help=f"What is compared on a GPU, of {', '.join(EVERY_SIDE)}.  [default: {','.join(SIDES)}]",
)
@click.option(
    "--turns", type=click.IntRange(1), default=TURNS, show_default=True, help="Engines of each side."
)
@click.option(
    "--deadline",
    "deadline_s",
    type=click.IntRange(60),
    default=_DEADLINE_S,
    show_default=True,
    help="Seconds after which the Job is ended, waiting for a node and an image included.",
)
def job(**options: object) -> None:
    """Print a Kubernetes Job that measures the tiers of a KVCacheTier on a node.

    Its pod is like the engines', from image to huge pages, and has a model of the same sizes with random
    weights. The table is in its log, the figures as JSON in its termination message.
    """
    from kvtier_operator.cli.bench.jobs import BenchJobOptions, jobs_of  # noqa: PLC0415 - loads the planner
    from kvtier_operator.cli.images import warn_of_unpublished  # noqa: PLC0415 - as above
    from kvtier_operator.planning.objects.manifest import to_yaml  # noqa: PLC0415 - as above

    made = jobs_of(BenchJobOptions(**options))  # type: ignore[arg-type]
    for line in (*made.remarks, *made.refusals):
        say(line, err=True)
    if made.refusals:
        sys.exit(EXIT_REJECTED)
    text = to_yaml(made.jobs)
    warn_of_unpublished(text)
    say_whole(text, end="")
