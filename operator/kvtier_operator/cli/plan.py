"""`kvtier plan`: what a KVCacheTier comes to, on a screen or with every number."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kvtier_common.terminal.say import say, say_json, say_whole, wants_colour
from kvtier_operator.cli.inputs import options
from kvtier_operator.cli.inputs.what_if import OPTIONS, WhatIf, what_if
from kvtier_operator.cli.main import EXIT_REJECTED

if TYPE_CHECKING:
    from kvtier_operator.cli.inputs.load import Loaded
    from kvtier_operator.planning.attach.plan import AttachPlan
    from kvtier_operator.planning.images import ImageSource
    from kvtier_operator.planning.node_share import NodeShare, NodeSize
    from kvtier_operator.planning.plan import Plan

_MORE: Final = "-v for every number and check"
_LEAST_TIER: Final = "1Gi"
"""In place of a size that is asked for."""


@click.command(short_help="Size the tiers of a KVCacheTier: what it takes, holds and brings.")
@options.optional_name
@options.optional_filenames
@what_if
@options.namespace
@options.cluster
@options.model_config
@click.option(
    "--node-memory",
    metavar="SIZE",
    callback=options.size_bytes,
    help="Memory of a node, such as 1Ti: says the largest CPU tier with which engines fill its GPUs.",
)
@click.option(
    "--node-gpus",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="GPUs of that node, or parts of them (MIG) where engines take those; by default as many GPUs as are "
    "usual.",
)
@click.option("--local", is_flag=True, help="Check against this machine's memory, pages, limits and disk.")
@click.option(
    "--against-namespace",
    "against",
    metavar="NAMESPACE",
    callback=options.namespace_name,
    help="Say which storage classes and claims this namespace of KUBECONFIG's cluster lacks.",
)
@options.hub
@options.images
@options.policy
@click.option("-v", "--verbose", is_flag=True, help="Every number with how it came about, and every check.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="For a reader or a program, which gets every number.",
)
def plan(  # noqa: PLR0913 - one parameter an option
    *,
    name: str | None,
    paths: tuple[str, ...],
    asked: WhatIf,
    namespace: str | None,
    cluster: options.ClusterChoice,
    model_config: str | None,
    node_memory: int | None,
    node_gpus: int | None,
    against: str | None,
    output: str,
    policy: Path | None,
    local: bool,
    hub: bool,
    verbose: bool,
    images: "ImageSource",
) -> None:
    """Size the tiers of a KVCacheTier: what it takes of nodes, what it holds and whether that pays.

    NAME is one of KUBECONFIG's cluster, which is read with your own rights; -f has it from files; --model
    needs neither. --set and its like change what NAME or a file has.

    Exit status: 0 fine, 1 rejected by a check (the report says which), no room on the node that was asked
    about, or a route hidden by another one, 2 bad input, 3 the resource, the cluster or the right to read it
    is missing.
    """
    from kvtier_operator.cli.inputs.load import policy_file  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.cli.inputs.plans import (  # noqa: PLC0415 - as above
        attached_plans,
        load_by_name_or_paths,
        node_shares,
        plans_of,
    )

    limits = policy_file(policy) if policy else None
    node = _node(node_memory, node_gpus)
    if name is None and not paths and namespace is None:
        loaded = _of_options(asked, node)
    else:
        loaded = load_by_name_or_paths(
            name, paths, namespace=namespace, cluster=cluster, model_config=model_config, edits=asked.edits
        )
    loaded, attached = _split(loaded)
    if attached.resources and (local or against is not None or node is not None):
        source, resource = attached.resources[0]
        raise click.UsageError(
            f"{source}: {resource.metadata.name} has spec.attach, and its engines are in pods of others: "
            "--local, --against-namespace and --node-memory are for resources with engines of their own"
        )
    pods = attached_plans(attached, model_config=model_config, hub=hub)
    shares: list[NodeShare] = []
    if node is not None:
        takes_largest = not paths and name is None and asked.cpu is None
        loaded, shares = node_shares(
            loaded, node, takes_largest=takes_largest, model_config=model_config, hub=hub, images=images
        )
    by_source = plans_of(
        loaded, policy=limits, model_config=model_config, local=local, hub=hub, images=images
    )
    sources, plans = [source for source, _ in by_source], [plan for _, plan in by_source]
    if against is not None:
        from kvtier_operator.cli.inputs.namespace import with_namespace_checks  # noqa: PLC0415 - loads the cluster's client

        plans = with_namespace_checks(against, plans, cluster)
    hidden = False
    if len(plans) > 1:
        from kvtier_operator.cli.inputs.plans import collisions  # noqa: PLC0415 - loads what routes need

        for one in (overlaps := collisions(zip(sources, plans, strict=True))):
            # of no report alone, so before them; a program reads its documents there
            say(str(one), err=output != "text")
        hidden = any(one.hidden.wholly for one in overlaps)
    if output == "text":
        _say_text(sources, plans, shares, pods, verbose=verbose)
    else:
        _say_data(plans, shares, pods, output)
    if hidden or any(one.rejected for one in plans) or any(not share.fitting for share in shares):
        sys.exit(EXIT_REJECTED)


def _split(loaded: "Loaded") -> "tuple[Loaded, Loaded]":
    """Resources with engines of their own, and those whose engines are others'."""
    own, attached = (
        tuple(one for one in loaded.resources if (one[1].spec.attach is not None) is is_attached)
        for is_attached in (False, True)
    )
    return replace(loaded, resources=own), replace(loaded, resources=attached)


def _node(memory_bytes: int | None, gpus: int | None) -> "NodeSize | None":
    from kvtier_operator.planning.node_share import NodeSize  # noqa: PLC0415 - help needs none of it

    if memory_bytes is None:
        if gpus is not None:
            raise click.UsageError("--node-gpus is of a node whose memory --node-memory says: give that, too")
        return None
    return NodeSize(memory_bytes, gpus)


def _of_options(asked: WhatIf, node: "NodeSize | None") -> "Loaded":
    """The one resource that the options describe."""
    from kvtier_operator.cli.inputs.load import Loaded  # noqa: PLC0415 - help needs none of it

    if asked.model is None:
        raise click.UsageError("give -f FILE, the NAME of a KVCacheTier of a cluster, or --model and --cpu")
    has_size = asked.cpu is not None or any("spec.tiers.cpu" in setting for setting in asked.settings)
    if not has_size and node is None:
        raise click.UsageError(
            "give the CPU tier's size by --cpu, such as --cpu 100Gi, or --node-memory to be told the largest"
        )
    resource = asked.resource() if has_size else asked.resource(cpu=_LEAST_TIER)
    return Loaded(((OPTIONS, resource),), {})


def _say_text(
    sources: Sequence[str],
    plans: "Sequence[Plan]",
    shares: "Sequence[NodeShare]",
    pods: "Sequence[tuple[str, AttachPlan]]",
    *,
    verbose: bool,
) -> None:
    from kvtier_operator.cli.text import terminal_columns  # noqa: PLC0415 - only for a reader
    from kvtier_operator.planning.report.demand import together  # noqa: PLC0415 - as above

    columns, colour = terminal_columns(), wants_colour()
    is_one = len(plans) + len(pods) == 1
    names = [""] if is_one else sources
    nodes = [str(share) for share in shares] or [""] * len(plans)
    texts = []
    for one, source, node in zip(plans, names if plans else (), nodes, strict=True):
        if verbose:
            from kvtier_operator.planning.report.explain import explain  # noqa: PLC0415 - loads Jinja2

            texts.append(explain(one, colour=colour, source=source, columns=columns))
            texts += [f"node: {node}\n"] if node else []
        else:
            from kvtier_operator.planning.report.summary import summarise  # noqa: PLC0415 - only for a reader

            texts.append(summarise(one, colour=colour, source=source, columns=columns, node=node))
    for source, given in pods:
        from kvtier_operator.planning.report.attached import summarise_attached  # noqa: PLC0415 - few resources have it

        named = "" if is_one else source
        texts.append(summarise_attached(given, colour=colour, source=named, columns=columns, verbose=verbose))
    if len(plans) > 1:
        texts.append(f"{together(plans)}\n")
    if not verbose:
        texts.append(f"{_MORE}\n")
    say("\n".join(texts), end="", colour=colour)


def _say_data(
    plans: "Sequence[Plan]",
    shares: "Sequence[NodeShare]",
    pods: "Sequence[tuple[str, AttachPlan]]",
    output: str,
) -> None:
    from kvtier_operator.planning.report.attached import report_attached  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.planning.report.fields import report  # noqa: PLC0415 - help needs none of it

    reports: list[dict[str, Any]] = [report(one) for one in plans]
    for one, share in zip(reports, shares, strict=bool(shares)):
        one["node"] = share.fields()
    reports += [report_attached(given) for _, given in pods]
    if output == "yaml":
        from kvtier_operator.planning.objects.manifest import to_yaml  # noqa: PLC0415 - as above

        say_whole(to_yaml(reports, sort_keys=False), end="")
    else:
        say_json(reports if len(reports) > 1 else reports[0])
