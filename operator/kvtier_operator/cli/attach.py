"""`kvtier attach`: manifests of others with the tiers in their vLLM pods, without a cluster."""

import difflib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

import click

from kvtier_common.one_line import one_line
from kvtier_common.terminal.say import say, say_whole
from kvtier_operator.cli.inputs import options
from kvtier_operator.cli.main import EXIT_REJECTED

if TYPE_CHECKING:
    from kvtier_operator.api.resource import KVCacheTier
    from kvtier_operator.cli.inputs.load import LoadedBeside
    from kvtier_operator.cli.inputs.observe import Facts
    from kvtier_operator.planning.attach.documents import AttachedDocument
    from kvtier_operator.planning.observed import Observed

_PlanT = TypeVar("_PlanT")
_MOST_CHARACTERS: Final = 600
"""Of a line about an object, which quotes what others wrote."""
_MOST_NAME: Final = 100
_YAML: Final = "yaml"
_PATCH: Final = "patch"
_PICKER: Final = "picker-config"


@click.command(short_help="Put the tiers into vLLM pods that others own.")
@click.option(
    "-f",
    "--filename",
    "paths",
    type=click.Path(allow_dash=True),
    multiple=True,
    required=True,
    help="Files of KVCacheTiers with spec.attach and of those who own the pods, or folders or https:// "
    "addresses of them, or - for standard input; may be repeated.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice([_YAML, _PATCH, _PICKER]),
    default=_YAML,
    show_default=True,
    help="The owners' objects, whole; a kustomize component that patches them; or a ConfigMap with what "
    "their endpoint picker should know of the tiers.",
)
@click.option(
    "--picker-version",
    default="0.10",
    show_default=True,
    metavar="VERSION",
    help="Of that picker: 0.9 or 0.10 is llm-d's, of which KServe 0.20 has 0.9; 1.4 or 1.5 the inference "
    "extension's.",
)
@click.option(
    "--payload",
    type=click.Choice(["init-container", "image-volume"]),
    default="init-container",
    show_default=True,
    help="How the connector comes into the pods: copied, or as a volume of its image (Kubernetes 1.35).",
)
@click.option("--diff", is_flag=True, help="Show what changes in the owners' objects instead.")
@options.model_config
@options.hub
@options.images
def attach(
    paths: tuple[str, ...],
    output: str,
    picker_version: str,
    payload: str,
    *,
    diff: bool,
    **facts: Unpack["Facts"],
) -> None:
    """Put the tiers of KVCacheTiers with spec.attach into manifests of those who own the pods.

    For GitOps, for Kueue, and for clusters without MutatingAdmissionPolicies. Command, arguments and image
    of an engine are never changed. Standard error says what became of the pods of each object; exit status 1
    where none was given a tier.
    """
    from kvtier_operator.cli.images import warn_of_unpublished  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.cli.inputs.load import load_beside  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.planning.attach.delivery import Delivery  # noqa: PLC0415 - as above
    from kvtier_operator.planning.attach.documents import attach_document  # noqa: PLC0415 - as above
    from kvtier_operator.planning.attach.picker import (  # noqa: PLC0415 - as above
        known_picker_version,
        others_picker_config,
    )
    from kvtier_operator.planning.attach.plan import plan_attach  # noqa: PLC0415 - as above

    version = known_picker_version(picker_version)
    beside = load_beside(paths)
    if output == _PICKER:
        configs = _planned(beside, partial(others_picker_config, version=version), **facts)
        say_whole(_whole(configs), end="")
        return
    if not beside.others:
        raise click.UsageError("no manifests of those who own the pods: add them, as -f deployment.yaml")
    plans = _planned(beside, plan_attach, **facts)
    image = facts["images"].connector()
    delivery = Delivery(payload)
    attached = [attach_document(plans, document, image, delivery) for _, document in beside.others]
    if diff:
        text = "".join(_diff(attached))
    elif output == _PATCH:
        text = _component(attached)
    else:
        text = _whole(one.document for one in attached)
    warn_of_unpublished(text)
    say_whole(text, end="")
    for (source, _), one in zip(beside.others, attached, strict=True):
        for line in _lines(one, patches=output == _PATCH and not diff):
            say(one_line(f"{source}: {line}", _MOST_CHARACTERS), err=True)
    if not any(outcome.attached_to for one in attached for outcome in one.outcomes):
        sys.exit(EXIT_REJECTED)


def _planned(
    beside: "LoadedBeside", plan: "Callable[[KVCacheTier, Observed], _PlanT]", **facts: Unpack["Facts"]
) -> "list[_PlanT]":
    """What is made of each resource; raises InvalidInputError for one without spec.attach."""
    from kvtier_operator.cli.inputs.load import naming  # noqa: PLC0415 - as above
    from kvtier_operator.cli.inputs.observe import observe  # noqa: PLC0415 - as above
    from kvtier_operator.errors import InvalidInputError, Problem  # noqa: PLC0415 - as above

    plans = []
    for source, resource in beside.loaded.resources:
        with naming(source):
            if resource.spec.attach is None:
                message = "is required here: it says which pods get the tiers"
                raise InvalidInputError("", Problem("spec.attach", message))
            observed = observe(resource, config_maps=beside.loaded.config_maps, **facts)
            plans.append(plan(resource, observed))
    return plans


def _whole(documents: Iterable[Mapping[str, Any]]) -> str:
    from kvtier_operator.planning.objects.manifest import to_yaml  # noqa: PLC0415 - as above

    return to_yaml(documents, sort_keys=False)


def _component(attached: "Sequence[AttachedDocument]") -> str:
    from kvtier_operator.planning.attach.patch import kustomize_patches  # noqa: PLC0415 - as above

    patches = [
        patch
        for one in attached
        if one.document != one.before and _has_name(one.before)
        for patch in kustomize_patches(one.before, one.document)
    ]
    component = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "patches": patches}
    return _whole([component])


def _diff(attached: "Sequence[AttachedDocument]") -> Iterator[str]:
    for one in attached:
        texts = (_whole([document]) for document in (one.before, one.document))
        old, new = (text.splitlines(keepends=True) for text in texts)
        name = _name(one.before)
        yield from difflib.unified_diff(old, new, f"{name} before", f"{name} after")


def _has_name(document: Mapping[str, Any]) -> bool:
    """Whether a patch can be for this object alone, and not for all of its kind."""
    metadata = document.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("name"))


def _lines(attached: "AttachedDocument", *, patches: bool) -> Iterator[str]:
    """What became of one object."""
    from kvtier_operator.planning.attach.owners import (  # noqa: PLC0415 - as above
        KNOWN_KINDS,
        has_unknown_pods,
    )

    name = _name(attached.before)
    if has_unknown_pods(attached.before):
        kinds = ", ".join(KNOWN_KINDS)
        yield f"{name} is passed on as it is: kvtier attach finds pods only in {kinds}"
    elif not attached.outcomes:
        yield f"{name} is passed on as it is: it has no pods"
    elif patches and attached.document != attached.before and not _has_name(attached.before):
        yield f"{name} has no metadata.name, by which kustomize would know it: it is not in the patches"
        return
    for outcome in attached.outcomes:
        where = f"{name} {outcome.field}"
        if outcome.attached_to:
            yield f"{where}: has the tiers of KVCacheTier {outcome.attached_to}"
        for remark in outcome.remarks:
            yield f"{where}: {remark}"


def _name(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return one_line(f"{document.get('kind')}/{name}", _MOST_NAME)
