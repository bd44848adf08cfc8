"""`kvtier connector-args`: a resource's engine as a line for a plain `vllm serve`."""

import click

from kvtier_common import options as common
from kvtier_common.terminal.say import say, say_json, say_whole
from kvtier_operator.cli.inputs import options
from kvtier_operator.errors import InvalidInputError, Problem


@click.command("connector-args", short_help="Print a KVCacheTier's engine as a `vllm serve` line.")
@options.filename
@options.model_config
@options.hub
@click.option(
    "--disk-folder",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Where the disk tier goes on that machine; by default a hostPath's folder, else the pod's path.",
)
@common.output
def connector_args(
    path: str, model_config: str | None, disk_folder: str | None, output: str, *, hub: bool
) -> None:
    """Print a KVCacheTier's engine as a `vllm serve` line, for a machine without an operator.

    The line is quoted for a shell and has all of the plan's arguments and variables. What only a cluster has
    is named on standard error. Exit status: 1 rejected by a check, 2 bad input.
    """
    from kvtier_operator.cli.inputs.naming import naming  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.cli.inputs.plans import accepted_plans  # noqa: PLC0415 - as above
    from kvtier_operator.cli.lookup.serve_line import serve_line  # noqa: PLC0415 - as above
    from kvtier_operator.cli.text.verdicts import without_pods  # noqa: PLC0415 - as above
    from kvtier_operator.planning.images import ImageSource  # noqa: PLC0415 - as above

    plans = accepted_plans([path], model_config=model_config, hub=hub, images=ImageSource())
    if len(plans) > 1:
        names = ", ".join(plan.resource.metadata.name for _, plan in plans)
        raise InvalidInputError(
            path, Problem("", f"holds {len(plans)} resources ({names}); ask for one at a time")
        )
    [(source, plan)] = plans
    with naming(source):
        line = serve_line(plan, disk_folder)
    for said in without_pods(source, plan.resource.spec):
        say(said, err=True)
    if line.model_elsewhere:
        say(
            f"{source}: spec.model.source: {line.model_elsewhere} is a cluster's: this asks the Hub for "
            f"{plan.resource.spec.model.name}; put the folder with the model in its place",
            err=True,
        )
    for name in line.env_elsewhere:
        say(f"{source}: {name} comes from the cluster: set it in the environment", err=True)
    if output == "json":
        shown = {"env": dict(line.env), "argv": line.argv, "kvTransferConfig": line.transfer_config}
        say_json(shown)
    else:
        say_whole(str(line))
