"""`kvtier bench`: measurements; each sub-command is an entry point of the package that it measures."""

import click

from kvtier_operator.cli.main import EntryPointGroup


@click.group(
    cls=EntryPointGroup,
    entry_point_group="kvtier.bench",
    short_help="Measure TTFT, throughput and the connector.",
)
def bench() -> None:
    """Measure TTFT, throughput and the connector; figures are printed and written as JSON."""
