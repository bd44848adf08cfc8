"""`kvtier plan`: the sizing report."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvtier_common import options as common
from kvtier_common.terminal.say import say, say_json, wants_colour
from kvtier_operator.cli.inputs import options
from kvtier_operator.cli.main import EXIT_REJECTED

if TYPE_CHECKING:
    from kvtier_operator.planning.images import ImageSource


@click.command(short_help="Size the tiers of a KVCacheTier and say how each number came about.")
@options.optional_name
@options.optional_filenames
@options.namespace
@options.context
@options.model_config
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
@common.output
def plan(  # noqa: PLR0913 - one parameter an option
    *,
    name: str | None,
    paths: tuple[str, ...],
    namespace: str | None,
    context: str | None,
    model_config: str | None,
    against: str | None,
    output: str,
    policy: Path | None,
    local: bool,
    hub: bool,
    images: "ImageSource",
) -> None:
    """Size the tiers of a KVCacheTier and say how each number came about.

    NAME is one of KUBECONFIG's cluster, which is read with your own rights; -f has it from files.

    Exit status: 0 fine, 1 rejected by a check (the report says which) or a route hidden by another one,
    2 bad input, 3 the resource, the cluster or the right to read it is missing.
    """
    from kvtier_operator.cli.inputs.load import policy_file  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.cli.inputs.plans import load_by_name_or_paths, plans_of  # noqa: PLC0415 - as above

    limits = policy_file(policy) if policy else None
    loaded = load_by_name_or_paths(
        name, paths, namespace=namespace, context=context, model_config=model_config
    )
    by_source = plans_of(
        loaded, policy=limits, model_config=model_config, local=local, hub=hub, images=images
    )
    sources, plans = [source for source, _ in by_source], [plan for _, plan in by_source]
    if against is not None:
        from kvtier_operator.cli.inputs.namespace import with_namespace_checks  # noqa: PLC0415 - loads the cluster's client

        plans = with_namespace_checks(against, plans, context)
    hidden = False
    if len(plans) > 1:
        from kvtier_operator.cli.inputs.plans import collisions  # noqa: PLC0415 - loads what routes need

        for one in (overlaps := collisions(zip(sources, plans, strict=True))):
            # of no report alone, so before them; a program reads one document there
            say(str(one), err=output == "json")
        hidden = any(one.hidden.wholly for one in overlaps)
    if output == "json":
        from kvtier_operator.planning.report.fields import report  # noqa: PLC0415 - Jinja2 is not needed for it

        reports = [report(one) for one in plans]
        say_json(reports if len(reports) > 1 else reports[0])
    else:
        from kvtier_operator.cli.text import terminal_columns  # noqa: PLC0415 - only for a reader
        from kvtier_operator.planning.report.explain import explain  # noqa: PLC0415 - loads Jinja2

        columns = terminal_columns()
        colour = wants_colour()
        names = sources if len(sources) > 1 else [""]
        texts = (
            explain(one, colour=colour, source=name, columns=columns)
            for one, name in zip(plans, names, strict=True)
        )
        say("\n".join(texts), end="", colour=colour)
    if hidden or any(one.rejected for one in plans):
        sys.exit(EXIT_REJECTED)
