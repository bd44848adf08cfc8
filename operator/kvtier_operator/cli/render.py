"""`kvtier render`: the Kubernetes objects of one or more resources, as YAML."""

import sys

import click

from kvtier_operator.cli import options
from kvtier_operator.cli.collisions import tell_collisions
from kvtier_operator.cli.load import load_resources
from kvtier_operator.cli.main import EXIT_REJECTED
from kvtier_operator.cli.observe import observe
from kvtier_operator.cli.verdicts import refusals
from kvtier_operator.planning.image_source import ImageSource
from kvtier_operator.planning.manifest import to_yaml
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.planner import make_plan


@click.command()
@options.filenames
@options.model_config
@options.hub
@options.images
def render(paths: tuple[str, ...], model_config: str | None, *, hub: bool, images: ImageSource) -> None:
    """Print the Kubernetes objects of KVCacheTiers, in the order to apply them.

    Nothing is printed where a check refuses one of the resources: standard error says why, exit code 1.
    """
    plans = [
        (source, make_plan(resource, observe(resource, model_config=model_config, hub=hub, images=images)))
        for source, resource in load_resources(paths)
    ]
    refused = [line for source, plan in plans for line in refusals(source, plan)]
    if refused:
        click.echo("\n".join(refused), err=True)
        sys.exit(EXIT_REJECTED)
    tell_collisions(plan for _, plan in plans)
    click.echo(to_yaml(built for _, plan in plans for built in build_objects(plan)), nl=False)
