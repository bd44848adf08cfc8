"""`kvtier bench job`: a Kubernetes Job that measures a resource's tiers on a node of its cluster."""

import sys
from typing import Final

import click
from pydantic import ValidationError

from kvtier_connector.bench.names import names_of, names_shown
from kvtier_connector.bench.shapes import DEMO, SHAPES, shape_of
from kvtier_connector.bench.sides.names import PARTS, SIDES, VLLM
from kvtier_operator.api.engine import Device
from kvtier_operator.api.resource import Backend, KVCacheTier, Metadata, Spec
from kvtier_operator.cli import options
from kvtier_operator.cli.load import load_resources
from kvtier_operator.cli.main import EXIT_REJECTED
from kvtier_operator.cli.observe import observe
from kvtier_operator.cli.verdicts import refusals
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.bench import (
    BenchRun,
    as_native,
    in_namespace,
    with_room_for,
    without_shared_disk,
)
from kvtier_operator.planning.image_source import ImageSource
from kvtier_operator.planning.manifest import to_yaml
from kvtier_operator.planning.objects.bench_job import bench_job
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan

_DEADLINE_S: Final = 7200
_TURNS: Final = 2


def _namespace(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        try:
            Metadata(name="bench", namespace=value)
        except ValidationError as error:
            message = f"{value!r} is not a namespace: a-z, 0-9 and -, at most 63 characters"
            raise click.BadParameter(message) from error
    return value


@click.command()
@options.filenames
@options.model_config
@options.hub
@options.images
@click.option("-n", "--namespace", callback=_namespace, help="Of the Job; by default the resource's.")
@click.option(
    "--only", multiple=True, callback=names_of(PARTS), metavar=names_shown(PARTS), help="Leave out the other."
)
@click.option(
    "--shape",
    type=click.Choice([*SHAPES]),
    help=f"Sizes of a random model; by default the resource's model's, on a CPU {DEMO}.",
)
@click.option(
    "--sides",
    multiple=True,
    callback=names_of(SIDES),
    metavar=names_shown(SIDES),
    help="What is compared on a GPU; all by default.",
)
@click.option(
    "--turns", type=click.IntRange(1), default=_TURNS, show_default=True, help="Engines of each side."
)
@click.option(
    "--deadline",
    "deadline_s",
    type=click.IntRange(60),
    default=_DEADLINE_S,
    show_default=True,
    help="Seconds after which the Job is ended, waiting for a node and an image included.",
)
def job(  # noqa: PLR0913, PLR0917 - one parameter an option
    paths: tuple[str, ...],
    model_config: str | None,
    hub: bool,
    images: ImageSource,
    namespace: str | None,
    only: tuple[str, ...],
    shape: str | None,
    sides: tuple[str, ...],
    turns: int,
    deadline_s: int,
) -> None:
    """Print a Kubernetes Job that measures the tiers of a KVCacheTier on a node.

    Its pod is like the engines', from image to huge pages, and has a model of the same sizes with random
    weights. The table is in its log, the figures as JSON in its termination message.
    """
    jobs, refused = [], list[str]()
    for source, given in load_resources(paths):
        resource, left_out = without_shared_disk(in_namespace(given, namespace))
        run = BenchRun(
            shape=_shape(source, resource.spec, shape),
            parts=only or PARTS,
            sides=_sides(source, resource.spec, sides),
            turns=turns,
            deadline_s=deadline_s,
        )
        plan = _planned(resource, run, observe(resource, model_config=model_config, hub=hub, images=images))
        refused += refusals(source, plan)
        if left_out:
            click.echo(f"{source}: {left_out}", err=True)
        jobs.append(bench_job(plan, run))
    if refused:
        click.echo("\n".join(refused), err=True)
        sys.exit(EXIT_REJECTED)
    click.echo(to_yaml(jobs), nl=False)


def _planned(resource: KVCacheTier, run: BenchRun, observed: Observed) -> Plan:
    plan = make_plan(resource, observed)
    if VLLM not in run.sides:
        return plan
    return with_room_for(plan, make_plan(as_native(resource), observed))


def _shape(source: str, spec: Spec, wanted: str | None) -> str:
    """The shape to draw, which its backend and its GPUs have to be able to serve.

    Raises:
        InvalidInputError: They are not, or no shape is known for the model.
    """
    if spec.backend is not Backend.KVTIER:
        raise _problem(
            source,
            "spec.backend",
            f"{spec.backend}: the bench measures KVTier's connector beside vLLM's own and none; "
            f"give a resource with backend {Backend.KVTIER}, such as this one with that changed",
        )
    default = DEMO if spec.engine.device is Device.CPU else shape_of(spec.model.name)
    shape = wanted or default
    if shape is None:
        known = ", ".join(SHAPES)
        raise _problem(
            source,
            "spec.model.name",
            f"the bench has no sizes of {spec.model.name}; choose the nearest with --shape: {known}",
        )
    heads, ranks = SHAPES[shape].config["num_attention_heads"], spec.engine.tensor_parallel_size
    if heads % ranks:
        raise _problem(
            source,
            "spec.engine.tensorParallelSize",
            f"{ranks} ranks cannot share the {heads} heads of {shape}; choose another --shape",
        )
    return shape


def _sides(source: str, spec: Spec, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """What is compared; nothing on a CPU, where one engine has its connector in and out.

    Raises:
        InvalidInputError: Something was asked for there.
    """
    if spec.engine.device is not Device.CPU:
        return wanted or SIDES
    if wanted:
        raise _problem(
            source,
            "spec.engine.device",
            "cpu: --sides compares engines on a GPU; without it one engine has its connector in and out",
        )
    return ()


def _problem(source: str, field: str, message: str) -> InvalidInputError:
    return InvalidInputError(source, Problem(field, message))
