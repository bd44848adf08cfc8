"""Options that every command which plans resources takes alike."""

import functools
from collections.abc import Callable
from typing import Any, Final

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


def images(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say where images come from, which the command gets as one `images`."""

    @click.option(
        "--image-registry",
        metavar="REGISTRY",
        help="Takes the place of each image's own registry: HOST[:PORT][/PATH].",
    )
    @click.option(
        "--image",
        "references",
        metavar="NAME=REFERENCE",
        multiple=True,
        help="An image in place of the published one, such as engine=...@sha256:...; may be repeated.",
    )
    @functools.wraps(command)
    def with_images(*, image_registry: str | None, references: tuple[str, ...], **values: Any) -> None:  # noqa: ANN401 - the command's own
        from kvtier_operator.planning.image_source import image_source  # noqa: PLC0415 - help needs none of it

        command(images=image_source(registry=image_registry, references=references), **values)

    return with_images
