"""`kvtier images`: every image that a cluster pulls for some resources, for a mirror."""

from typing import TYPE_CHECKING

import click

from kvtier_common import options as common
from kvtier_common.terminal.say import say, say_json
from kvtier_operator.cli.inputs import options

if TYPE_CHECKING:
    from kvtier_operator.planning.images import ImageSource


@click.command(short_help="List the images that a cluster pulls for KVCacheTiers.")
@options.filenames
@options.model_config
@options.hub
@options.images
@common.output
def images(
    paths: tuple[str, ...], model_config: str | None, output: str, *, hub: bool, images: "ImageSource"
) -> None:
    """List the images that a cluster pulls for KVCacheTiers, the operator's among them, one a line.

    Without --image-registry and --image they are the published ones, to copy from; with them those that the
    pods name, to copy to. Where a check refuses a resource nothing is printed, and the exit code is 1.
    """
    from kvtier_operator.cli.inputs.plans import accepted_plans  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.cli.lookup.pulled_images import pulled_images  # noqa: PLC0415 - as above

    plans = accepted_plans(paths, model_config=model_config, hub=hub, images=images)
    found = pulled_images([plan for _, plan in plans], images)
    if output == "json":
        say_json([{"image": each.image, "usedBy": each.used_by} for each in found])
    else:
        say("\n".join(each.image for each in found))
