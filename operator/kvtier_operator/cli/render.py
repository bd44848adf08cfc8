"""`kvtier render`: the Kubernetes objects of one or more resources, as YAML or JSON."""

import sys
from typing import TYPE_CHECKING

import click

from kvtier_common.terminal.say import say, say_json, say_whole
from kvtier_operator.cli.inputs import options
from kvtier_operator.cli.main import EXIT_REJECTED

if TYPE_CHECKING:
    from kvtier_operator.planning.images import ImageSource


@click.command(short_help="Print the Kubernetes objects of KVCacheTiers.")
@options.filenames
@options.model_config
@options.hub
@options.images
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="A stream of YAML documents, or one List as JSON.",
)
def render(
    paths: tuple[str, ...], model_config: str | None, *, hub: bool, images: "ImageSource", output: str
) -> None:
    """Print the Kubernetes objects of KVCacheTiers, in the order to apply them.

    Nothing is printed where a check refuses one of the resources, or where one's route would hide another's:
    standard error says why, exit status 1. A store's Secret is not printed: standard error says how to make
    it.
    """
    from kvtier_operator.cli.images import warn_of_unpublished  # noqa: PLC0415 - as above
    from kvtier_operator.cli.inputs.plans import accepted_plans, collisions  # noqa: PLC0415 - as above
    from kvtier_operator.planning.objects import build_objects  # noqa: PLC0415 - as above
    from kvtier_operator.planning.objects.manifest import to_yaml  # noqa: PLC0415 - as above
    from kvtier_operator.planning.objects.store import password_command, store_secret  # noqa: PLC0415 - as above

    plans = accepted_plans(paths, model_config=model_config, hub=hub, images=images)
    hidden = collisions(plans)
    for one in hidden:
        say(str(one), err=True)
    if any(one.hidden.wholly for one in hidden):
        sys.exit(EXIT_REJECTED)
    for _, plan in plans:
        if secret := store_secret(plan):
            name = secret["metadata"]["name"]
            say(f"Secret {name} is not printed; make it once: {password_command(secret)}", err=True)
    objects = [built for _, plan in plans for built in build_objects(plan)]
    text = to_yaml(objects)
    warn_of_unpublished(text)
    if output == "json":
        say_json({"apiVersion": "v1", "kind": "List", "items": objects})
    else:
        say_whole(text, end="")
