"""Options that several commands of this package take alike."""

from typing import Final

import click

output: Final = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For a reader or a program.",
)
