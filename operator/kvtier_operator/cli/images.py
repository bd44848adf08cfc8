"""`kvtier images`: every image that a cluster pulls for some resources, for a mirror."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

import click

from kvtier_common import options as common
from kvtier_common.terminal.say import say, say_json
from kvtier_operator.cli.inputs import options

if TYPE_CHECKING:
    from kvtier_operator.api.resource import KVCacheTier
    from kvtier_operator.planning.images import ImageSource
    from kvtier_operator.planning.plan import Plan


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
    pods name, to copy to. Where a check refuses a resource nothing is printed, and the exit status is 1.
    """
    from kvtier_operator.cli.inputs.load import load  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.cli.inputs.plans import accept  # noqa: PLC0415 - as above

    loaded = load(paths)
    attaching = [resource for _, resource in loaded.resources if resource.spec.attach]
    own = tuple(one for one in loaded.resources if one[1].spec.attach is None)
    plans = accept(replace(loaded, resources=own), model_config=model_config, hub=hub, images=images)
    used_by = pulled_images([plan for _, plan in plans], images, attaching)
    if output == "json":
        say_json([{"image": image, "usedBy": users} for image, users in used_by.items()])
    else:
        say("\n".join(used_by))
    warn_of_unpublished(" ".join(used_by))


def warn_of_unpublished(text: str) -> None:
    """Says on standard error that images of a text can be pulled from nowhere, and what to do."""
    from kvtier_operator.planning.images import UNPUBLISHED_REGISTRY  # noqa: PLC0415 - help needs none of it

    if f"{UNPUBLISHED_REGISTRY}/" in text:
        push = "push them with make release publish REGISTRY=... and give --kvtier-registry"
        say(
            f"kvtier's own images are published nowhere, so {UNPUBLISHED_REGISTRY} has none: {push}", err=True
        )


def pulled_images(
    plans: "Iterable[Plan]", source: "ImageSource", attaching: "Iterable[KVCacheTier]" = ()
) -> dict[str, list[str]]:
    """The operator's image, those of all pods of the plans, and what pods of others get, by first use.

    Each with the containers and volumes that it is pulled for, such as `default/qwen3-32b-engine doctor`.
    """
    from kvtier_connector.payload import INIT_NAME  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.planning.objects import build_objects  # noqa: PLC0415 - as above

    used_by = {source.operator(): ["kvtier-operator"]}
    for plan in plans:
        for built in build_objects(plan):
            place = f"{built['metadata']['namespace']}/{built['metadata']['name']}"
            for name, image in _images_in(built):
                used_by.setdefault(image, []).append(f"{place} {name}")
    for resource in attaching:
        place = f"{resource.metadata.namespace}/{resource.metadata.name}"
        used_by.setdefault(source.connector(), []).append(f"{place} {INIT_NAME}")
    return used_by


def _images_in(node: object) -> Iterator[tuple[str, str]]:
    """Name and image of each container and image volume in a part of an object, wherever its pods stand."""
    if isinstance(node, Mapping):
        for key, below in node.items():
            if key in ("initContainers", "containers", "volumes") and isinstance(below, list):
                yield from filter(None, map(_image_of, filter(_is_part, below)))
            else:
                yield from _images_in(below)
    elif isinstance(node, list | tuple):
        for child in node:
            yield from _images_in(child)


def _is_part(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Affinities are free text, which may use these words for something else."""
    return isinstance(value, Mapping) and "name" in value


def _image_of(part: Mapping[str, Any]) -> tuple[str, str] | None:
    """Of a container its image, of a volume the image that it is made from; None for other volumes."""
    image = part.get("image")
    reference = image.get("reference") if isinstance(image, Mapping) else image
    return (part["name"], reference) if reference else None
