"""`kvtier connector-args`: a resource's engine as a line for a plain `vllm serve`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from kvtier_common import options as common
from kvtier_common.one_line import shell_line
from kvtier_common.terminal.say import say, say_json, say_whole
from kvtier_connector.payload import KEPT_VARIABLES, MIDDLEWARE
from kvtier_operator.cli.inputs import options
from kvtier_operator.errors import InvalidInputError, Problem

if TYPE_CHECKING:
    from kvtier_operator.planning.plan import Plan


_NEEDS: Final = (
    "the line needs vLLM 0.32 or 0.33 with kvtier's connector in the same Python: pip install "
    "'kvtier[connector]' there, from a checkout '.[connector]'"
)


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

    The line is quoted for a shell and has all of the plan's arguments and variables. What it takes, and what
    only a cluster has, is named on standard error. Exit status: 1 rejected by a check, 2 bad input.
    """
    from kvtier_operator.cli.inputs.load import naming  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.cli.inputs.plans import accepted_plans, without_pods  # noqa: PLC0415 - as above
    from kvtier_operator.planning.backends import traits_of  # noqa: PLC0415 - as above
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
    if traits_of(plan.resource.spec.backend).in_payload:
        say(f"{source}: {_NEEDS}", err=True)
    for said in without_pods(source, plan.resource.spec):
        say(said, err=True)
    if line.model_elsewhere:
        say(
            f"{source}: spec.model.source: {line.model_elsewhere} is a cluster's: this asks the Hub for "
            f"{plan.resource.spec.model.name}; put the folder with the model in its place",
            err=True,
        )
    if plan.resource.spec.prefixes:
        say(f"{source}: spec.prefixes: engines of pods compute them, this line does not: left out", err=True)
    for name in line.env_elsewhere:
        say(f"{source}: {name} comes from the cluster: set it in the environment", err=True)
    if output == "json":
        shown = {"env": dict(line.env), "argv": line.argv, "kvTransferConfig": line.transfer_config}
        say_json(shown)
    else:
        say_whole(str(line))


@dataclass(frozen=True, slots=True)
class ServeLine:
    """`vllm serve` with all that the plan says."""

    env: Mapping[str, str]  # variables to set
    argv: tuple[str, ...]  # program and arguments
    transfer_config: Mapping[str, object]  # the value of --kv-transfer-config among them
    env_elsewhere: tuple[str, ...]  # names of variables whose values a cluster has, in a Secret say
    # where a cluster has the model that the line asks the Hub for; empty for nowhere else
    model_elsewhere: str = ""

    def __str__(self) -> str:
        """As a shell takes it, in one line."""
        return shell_line(self.argv, self.env)


def serve_line(plan: "Plan", disk_folder: str | None = None) -> ServeLine:
    """The command line of one engine; by default its disk is a hostPath's folder, else at the pod's path."""
    from kvtier_common.formats.json_text import parse_json_object  # noqa: PLC0415 - help needs none of it
    from kvtier_operator.planning.backends.parts import (  # noqa: PLC0415 - as above
        TRANSFER_ARGUMENT,
        transfer_args,
    )

    engine = plan.engine
    if engine.files or engine.sidecars:
        what = "a server" if engine.sidecars else "a configuration file"
        raise InvalidInputError(
            "",
            Problem(
                "spec.backend",
                f"{plan.resource.spec.backend} needs {what} beside vLLM, which is more than a line; `kvtier "
                "render` prints what it needs, and KVTier and Native need nothing",
            ),
        )
    if disk_folder and not engine.mounts:
        raise InvalidInputError("", Problem("--disk-folder", "the resource has no disk tier: leave it out"))
    at = engine.args.index(TRANSFER_ARGUMENT) + 1
    folders = {
        mount.mount_path: disk_folder or mount.source.get("hostPath", {}).get("path", mount.mount_path)
        for mount in engine.mounts
    }
    config: dict[str, object] = {
        key: _relocate(value, folders) for key, value in parse_json_object(engine.args[at]).items()
    }
    _without_control(config)
    model, elsewhere = _model(plan)
    return ServeLine(
        env={name: value for name, value in engine.env.items() if name not in KEPT_VARIABLES},
        argv=(
            *("vllm", "serve", model),
            *engine.args[1 : at - 1],
            *transfer_args(config),
            *_without_middleware(engine.args[at + 1 :]),
        ),
        transfer_config=config,
        env_elsewhere=tuple(variable["name"] for variable in engine.env_from_resource),
        model_elsewhere=elsewhere,
    )


def _without_control(config: dict[str, object]) -> None:
    """Leave out the folder of the control socket, which a machine's user may not make where pods have it."""
    settings = config.get("kv_connector_extra_config")
    if isinstance(settings, dict):
        settings.pop("control_path", None)


def _without_middleware(arguments: Sequence[str]) -> list[str]:
    """Leave out ours, which a prefix or a control socket is for; one of the resource's own stays."""
    kept = list(arguments)
    if MIDDLEWARE in kept:
        at = kept.index(MIDDLEWARE)
        del kept[at - 1 : at + 1]
    return kept


def _model(plan: "Plan") -> tuple[str, str]:
    """A folder of the machine, where the resource names one; else the model's name, and its source."""
    from kvtier_operator.planning.weights.pod_weights import SourceKind, model_source  # noqa: PLC0415 - as above

    model = plan.resource.spec.model
    source = model_source(model)
    if source is not None and source.kind is SourceKind.NODE:
        return source.place, ""
    return model.name, model.source or ""


def _relocate(value: object, folders: Mapping[str, str]) -> object:
    """A setting with the paths of the pod's volumes replaced by those of the machine."""
    match value:
        case dict():
            return {key: _relocate(item, folders) for key, item in value.items()}
        case list():
            return [_relocate(element, folders) for element in value]
        case str():
            for mounted, here in folders.items():
                if value == mounted or value.startswith(f"{mounted}/"):
                    return here.rstrip("/") + value.removeprefix(mounted)
    return value
