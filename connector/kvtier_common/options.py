"""Options of the command line that several commands take alike."""

from pathlib import Path
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
write: Final = click.option(
    "--write", type=click.Path(dir_okay=False, path_type=Path), help="Also write JSON to this file."
)
