"""Options that every command which plans resources takes alike."""

from typing import Final

import click

filenames: Final = click.option(
    "-f",
    "--filename",
    "paths",
    multiple=True,
    required=True,
    help="A KVCacheTier file, a folder of them, or - for standard input; may be repeated.",
)
model_config: Final = click.option(
    "--model-config", type=click.Path(), help="The model's config.json, for a model kvtier lacks."
)
hub: Final = click.option(
    "--hub/--no-hub", default=True, help="Ask Hugging Face for a config.json that nothing else has."
)
