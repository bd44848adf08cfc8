"""Options that several commands of the planner take alike."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

_FILE: Final = click.Path(allow_dash=True)
"""Read where it is opened; a shell completes it."""


def _filenames(*, required: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "-f",
        "--filename",
        "paths",
        type=_FILE,
        multiple=True,
        required=required,
        help="A KVCacheTier file, a folder of them, or - for standard input; may be repeated.",
    )


filenames: Final = _filenames(required=True)
optional_filenames: Final = _filenames(required=False)
filename: Final = click.option(
    "-f",
    "--filename",
    "path",
    type=_FILE,
    required=True,
    help="A KVCacheTier file, or - for standard input.",
)
model_config: Final = click.option(
    "--model-config",
    type=click.Path(),
    help="The model's config.json or params.json, or a folder with it, for a model kvtier lacks.",
)
hub: Final = click.option(
    "--hub/--no-hub",
    default=False,
    show_default=True,
    help="Ask Hugging Face for a config.json that nothing else has; for operators with modelConfigs: hub.",
)

policy: Final = click.option(
    "--policy",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="What the cluster's owner lets resources ask for: operator.policy as YAML, or the chart's values.",
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
    @click.option(
        "--image-pull-secret",
        "pull_secrets",
        metavar="NAME",
        multiple=True,
        help="A Secret that pods pull with, after the resource's own; may be repeated.",
    )
    @functools.wraps(command)
    def with_images(
        *,
        image_registry: str | None,
        references: tuple[str, ...],
        pull_secrets: tuple[str, ...],
        **values: Any,  # noqa: ANN401 - the command's own
    ) -> None:
        from kvtier_operator.planning.images import image_source  # noqa: PLC0415 - help needs none of it

        source = image_source(registry=image_registry, references=references, pull_secrets=pull_secrets)
        command(images=source, **values)

    return with_images


def namespace_name(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Callback of an option that names a namespace: refuses what no cluster could have."""
    if value is None:
        return None
    from pydantic import ValidationError  # noqa: PLC0415 - takes a while, and help has no values

    from kvtier_operator.api.resource import Metadata  # noqa: PLC0415 - as above

    try:
        Metadata(name="any", namespace=value)
    except ValidationError as error:
        message = f"{value!r} is not a namespace: a-z, 0-9 and -, at most 63 characters"
        raise click.BadParameter(message) from error
    return value
