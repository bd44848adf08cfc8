"""`kvtier doctor`: whether an engine can start here."""

import sys
from pathlib import Path

import click

from kvtier_common import options as common
from kvtier_common.terminal.say import complain, say, say_json
from kvtier_operator.cli.inputs import options
from kvtier_operator.cli.main import EXIT_REJECTED
from kvtier_operator.doctor.examine import examine
from kvtier_operator.doctor.verdict import (
    Place,
    Severity,
    Verdict,
    fields,
    lines,
    termination_message,
    worst,
)
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.pod.demands import DEMANDS_VARIABLE, NODE_VARIABLE, Demands


@click.command(short_help="Check that an engine can start here, or say what was found on a cluster's nodes.")
@options.optional_name
@options.namespace
@options.cluster
@options.optional_filenames
@click.option("--model-config", type=click.Path(), help="The model's config.json, for a model kvtier lacks.")
@click.option("--hub/--no-hub", default=True, help="Ask Hugging Face for a config.json nothing else has.")
@common.output
@click.option("--in-pod", is_flag=True, help="Check the pod this runs in, as its init container does.")
@click.option("--demands", envvar=DEMANDS_VARIABLE, hidden=True, help="What the pod must find, as JSON.")
@click.option("--node", envvar=NODE_VARIABLE, hidden=True, default="this node", help="The pod's node.")
@click.option(
    "--termination-log", type=click.Path(path_type=Path), default="/dev/termination-log", hidden=True
)
def doctor(  # noqa: PLR0913 - one argument an option
    *,
    name: str | None,
    namespace: str | None,
    cluster: options.ClusterChoice,
    paths: tuple[str, ...],
    model_config: str | None,
    demands: str | None,
    node: str,
    termination_log: Path,
    hub: bool,
    output: str,
    in_pod: bool,
) -> None:
    """Check that an engine can start here: memory, /dev/shm, huge pages, locked memory, disks.

    Each thing is really tried, and given back at once. With the NAME of a KVCacheTier of a cluster nothing is
    tried here: it says what the doctors in that one's pods found on their nodes.

    Exit status: 0 fine or with warnings, 1 something the engine requires is missing, 2 bad input, 3 the
    resource, the cluster or the right to read it is missing.
    """
    if in_pod:
        findings = _examine_pod(demands, node)
        message = termination_message(findings)
        _tell(findings, output)
        _write(termination_log, message)
        sys.exit(EXIT_REJECTED if worst(findings) is Severity.FAIL else 0)
    if name is not None and not paths:
        from kvtier_operator.cli.cluster.doctors import tell_what_doctors_found  # noqa: PLC0415 - as below

        sys.exit(EXIT_REJECTED if tell_what_doctors_found(name, namespace, cluster, output) else 0)
    if name is not None or not paths:
        raise click.UsageError("give -f FILE, the NAME of a KVCacheTier, or --in-pod in an engine's pod")
    if namespace is not None:
        raise click.UsageError("--namespace is of a NAME; a file says its own")
    from kvtier_operator.cli.doctor_local import examine_here  # noqa: PLC0415 - an init container needs none

    examined = []
    for one in examine_here(paths, model_config=model_config, hub=hub):
        examined.append(one)
        if output == "text":  # at once: a slow disk keeps the next one waiting
            say(f"{one.source}: {one.name}")
            _tell(one.verdicts, output)
    if output == "json":
        say_json(
            [
                {"source": one.source, "namespace": one.namespace, "name": one.name, **fields(one.verdicts)}
                for one in examined
            ]
        )
    sys.exit(EXIT_REJECTED if any(worst(one.verdicts) is Severity.FAIL for one in examined) else 0)


def _examine_pod(demands: str | None, node: str) -> list[Verdict]:
    if demands is None:
        raise InvalidInputError(
            "kvtier doctor --in-pod", Problem(DEMANDS_VARIABLE, "not set; kvtier sets it in an engine's pod")
        )
    try:
        wanted = Demands.from_json(demands)
    except ValueError as error:
        raise InvalidInputError("kvtier doctor --in-pod", Problem(DEMANDS_VARIABLE, str(error))) from error
    return list(examine(wanted, Place(node if node == "this node" else f"node {node}", in_pod=True)))


def _tell(verdicts: list[Verdict], output: str) -> None:
    if output == "json":
        say_json(fields(verdicts))
        return
    for line in lines(verdicts):
        say(line)


def _write(path: Path, message: str) -> None:
    """A termination message that cannot be written is in the log all the same."""
    try:
        path.write_text(message, encoding="utf-8")
    except OSError as error:
        complain(f"{path}: {error.strerror}")
