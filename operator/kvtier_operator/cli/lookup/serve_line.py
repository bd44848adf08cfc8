"""A plan's engine as one command line for a machine without an operator."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvtier_common.formats.json_text import parse_json_object
from kvtier_common.one_line import shell_line
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.backends.parts.transfer import TRANSFER_ARGUMENT, transfer_args
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.weights.model_source import SourceKind, model_source


@dataclass(frozen=True, slots=True)
class ServeLine:
    """`vllm serve` with all that the plan says.

    Attributes:
        env: Variables to set.
        argv: Program and arguments.
        transfer_config: The value of --kv-transfer-config among them.
        env_elsewhere: Names of variables whose values a cluster has, in a Secret say.
        model_elsewhere: Where a cluster has the model that the line asks the Hub for; empty for nowhere else.
    """

    env: Mapping[str, str]
    argv: tuple[str, ...]
    transfer_config: Mapping[str, object]
    env_elsewhere: tuple[str, ...]
    model_elsewhere: str = ""

    def __str__(self) -> str:
        """As a shell takes it, in one line."""
        return shell_line(self.argv, self.env)


def serve_line(plan: Plan, disk_folder: str | None = None) -> ServeLine:
    """The command line of one engine.

    Args:
        plan: The plan.
        disk_folder: Where the disk tier is on that machine; by default the folder of a hostPath, else the
            path that a pod has it at.

    Raises:
        InvalidInputError: The backend needs files or servers beside vLLM, or there is no disk tier to place.
    """
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
        key: _moved(value, folders) for key, value in parse_json_object(engine.args[at]).items()
    }
    model, elsewhere = _model(plan)
    return ServeLine(
        env=engine.env,
        argv=(
            *("vllm", "serve", model),
            *engine.args[1 : at - 1],
            *transfer_args(config),
            *engine.args[at + 1 :],
        ),
        transfer_config=config,
        env_elsewhere=tuple(each["name"] for each in engine.env_from_resource),
        model_elsewhere=elsewhere,
    )


def _model(plan: Plan) -> tuple[str, str]:
    """A folder of the machine, where the resource names one; else the model's name, and its source."""
    model = plan.resource.spec.model
    source = model_source(model)
    if source is not None and source.kind is SourceKind.NODE:
        return source.place, ""
    return model.name, model.source or ""


def _moved(value: object, folders: Mapping[str, str]) -> object:
    """A setting with the paths of the pod's volumes replaced by those of the machine."""
    match value:
        case dict():
            return {key: _moved(each, folders) for key, each in value.items()}
        case list():
            return [_moved(each, folders) for each in value]
        case str():
            for mounted, here in folders.items():
                if value == mounted or value.startswith(f"{mounted}/"):
                    return here.rstrip("/") + value.removeprefix(mounted)
    return value
