"""Observes what a plan depends on: the model's configuration, and for a local plan this machine."""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from kvtier_common.errors import KvtierError
from kvtier_common.kernel import has_ipc_lock, memlock_limits
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.model import ModelSpec
from kvtier_operator.cli.inputs.hub_home import TOKEN, cached_files, is_offline, token
from kvtier_operator.cli.inputs.load import ConfigMaps, read_regular
from kvtier_operator.doctor.memory import probe_memory
from kvtier_operator.doctor.volume import used_bytes
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.model_shape.config.model_files import (
    CONFIG,
    FILES,
    MOST_BYTES,
    PARAMS,
    QUANTIZATION,
    config_of_map,
    names_of,
    one_config,
    parse_file,
)
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.runtime.machine import state_folder, volume_folders

if TYPE_CHECKING:
    from kvtier_operator.reconcile.observe.huggingface import NotPublicError

_SHM: Final = Path("/dev/shm")  # noqa: S108 - its size is read, nothing is written there
_HUGEPAGES: Final = Path("/sys/kernel/mm/hugepages")
_SELF: Final = Path("/proc/self")


def this_machine(disk_path: Path | None = None, own: Iterable[Path] = ()) -> Machine:
    """Observes this machine, with the disk of a folder that may be missing; `own` are the tier's there."""
    place = (disk_path or Path()).absolute()
    there = next(folder for folder in (place, *place.parents) if folder.is_dir())
    memory = probe_memory()
    return Machine(
        memory_bytes=memory.limit_bytes,
        reserved_bytes=memory.reserved_bytes,
        available_bytes=memory.available_bytes,
        shm_bytes=shutil.disk_usage(_SHM).free if _SHM.is_dir() else None,
        free_hugepages=free_hugepages(),
        memlock_bytes=memlock_bytes(),
        disk_free_bytes=shutil.disk_usage(there).free,
        disk_own_bytes=sum(used_bytes(folder) for folder in own),
        cores=tuple(sorted(os.sched_getaffinity(0))),
    )


def memlock_bytes(proc: Path = _SELF) -> int | None:
    """The most memory that this process may lock; None without a limit, and where IPC_LOCK is effective."""
    soft_limit_bytes, _ = memlock_limits()
    return None if has_ipc_lock(proc) else soft_limit_bytes


def free_hugepages(pools: Path = _HUGEPAGES) -> Mapping[int, int]:
    """Free huge pages by page size in bytes (Linux, Documentation/admin-guide/mm/hugetlbpage.rst)."""
    free = {}
    for pool in pools.glob("hugepages-*kB"):
        page_bytes = int(pool.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        free[page_bytes] = int((pool / "free_hugepages").read_text(encoding="ascii"))
    return free


_MISTRAL_WEIGHTS: Final = "consolidated*.safetensors"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What was found of a model."""

    # its config.json with what stands beside it; None where nothing was found
    config: Mapping[str, Any] | None = None
    source: str = ""  # where it came from, for the report
    weights_bytes: int | None = None  # size of its weight files; None if they were not seen
    missing: str = ""  # why it could not be had, where it was looked for by name


def from_path(path: Path, field: str) -> ModelConfig:
    """From a config.json or params.json and what stands beside it, or a folder with them."""
    folder = path if path.is_dir() else path.parent
    if path.is_dir():
        paths = [folder / name for name in FILES if lexists(folder / name)]
        if not {CONFIG, PARAMS} & {path.name for path in paths}:
            raise InvalidInputError(
                str(path), Problem(field, f"cannot be read: it has neither {CONFIG} nor {PARAMS}")
            )
    else:
        beside = folder / QUANTIZATION
        paths = [path, *((beside,) if lexists(beside) and beside.name != path.name else ())]
    files = {path.name: _read(path, field) for path in paths}
    if not path.is_dir():  # whatever it is called
        files[PARAMS if path.name == PARAMS else CONFIG] = files.pop(path.name)
    mistral = path.is_dir() and any(folder.glob(_MISTRAL_WEIGHTS))
    return ModelConfig(one_config(files, mistral=mistral), _source(path, folder, files), weights_in(folder))


def from_config_map(key: tuple[str, str], config_maps: ConfigMaps) -> ModelConfig:
    """From the ConfigMap that the resource names, by namespace and name."""
    if key not in config_maps:
        return ModelConfig(
            missing=f"no ConfigMap {'/'.join(key)} is in the files given: add its file by a further -f, or "
            "give the model's own with --model-config"
        )
    source, document = config_maps[key]
    config, _ = config_of_map(document, source)
    return ModelConfig(config, f"ConfigMap {key[1]} of {source}")


def from_hub(model: ModelSpec) -> ModelConfig:
    """From Hugging Face, or what its cache on this machine has; nothing where neither has it."""
    from kvtier_operator.planning.model_shape.from_catalogue import shape_from_catalogue  # noqa: PLC0415 - reads YAML

    if shape_from_catalogue(model.name) is not None:
        return ModelConfig()  # known without asking anyone
    known = {file: _read(path, "spec.model.name") for file, path in cached_files(model.name, model.revision)}
    if is_offline():
        is_known = bool({CONFIG, PARAMS} & known.keys())
        return (
            ModelConfig(one_config(known), f"{model.name}, {names_of(known)}")
            if is_known
            else ModelConfig(missing="the Hub was not asked: HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set")
        )
    import asyncio  # noqa: PLC0415 - slow to import

    from kvtier_operator.reconcile.observe.huggingface import HubClient, NotPublicError  # noqa: PLC0415 - as above

    mine = token()
    hub = HubClient(f"Bearer {mine}" if mine else "")
    try:
        return ModelConfig(*asyncio.run(hub.config(model.name, model.revision, known)))
    except NotPublicError as error:
        return ModelConfig(missing=f"{error}{_about_token(error, mine)}")
    except KvtierError as error:
        if isinstance(error, InvalidInputError):
            raise
        return ModelConfig(missing=str(error))


def _about_token(error: "NotPublicError", mine: str) -> str:
    """What a person can do who is not let in."""
    if not error.needs_token:
        return ""
    if mine:
        return f"; have the account whose token is in {TOKEN} let in, or take another's"
    return f"; set {TOKEN} to the token of an account that is let in"


def weights_in(folder: Path) -> int | None:
    """Bytes of the weight files in a folder, safetensors before the older format; None without any."""
    for pattern in (_MISTRAL_WEIGHTS, "*.safetensors", "pytorch_model*.bin"):
        if sizes := [path.stat().st_size for path in folder.glob(pattern) if path.is_file()]:
            return sum(sizes)
    return None


def _source(path: Path, folder: Path, files: Mapping[str, object]) -> str:
    if path.is_dir():
        return str(folder / names_of(files))
    return f"{path} and the {QUANTIZATION} beside it" if QUANTIZATION in files else str(path)


def _read(path: Path, field: str) -> Mapping[str, Any]:
    try:
        text = read_regular(path, field, MOST_BYTES).decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            str(path), Problem(field, f"not JSON: {error}; give the model's own file")
        ) from error
    return parse_file(text, str(path), field)


class Facts(TypedDict, total=False):
    """Where to look for what a plan depends on."""

    model_config: str | None  # a config.json to read the model's shape from, or a folder with one
    local: bool  # whether the plan is for this machine, so that its memory, pages and limits count
    hub: bool  # whether Hugging Face may be asked for a config.json that nothing else has
    run_folder: Path | None  # of a local run; a new one when empty
    images: ImageSource  # where images come from; where they are published when there is none


def observe(
    resource_: KVCacheTier, *, config_maps: ConfigMaps | None = None, **facts: Unpack[Facts]
) -> Observed:
    """What one plan depends on; the resource may name ConfigMaps as `load` has them."""
    if resource_.spec.served_model is None:
        return Observed(images=facts.get("images") or ImageSource())
    model_config = facts.get("model_config")
    model = resource_.spec.model
    config = ModelConfig()
    folder, field = _folder(model)
    if model_config is not None:
        config = from_path(Path(model_config), "")
    elif model.config_ref is not None:
        key = (resource_.metadata.namespace, model.config_ref.name)
        config = from_config_map(key, config_maps or {})
    elif model.geometry is None and folder.is_dir():
        config = from_path(folder, field)
    elif model.geometry is None and facts.get("hub"):
        config = from_hub(model)
    draft = _draft(resource_)
    return Observed(
        model_config=config.config,
        model_config_source=config.source,
        model_config_missing=config.missing,
        machine=_machine(resource_, facts.get("run_folder")) if facts.get("local") else None,
        weights_bytes=config.weights_bytes,
        images=facts.get("images") or ImageSource(),
        draft_config=draft.config,
        draft_config_source=draft.source,
        draft_weights_bytes=draft.weights_bytes,
    )


def _draft(resource_: KVCacheTier) -> ModelConfig:
    """The same of the model that drafts tokens, where it is a folder here and the resource does not tell.

    No Hub is asked for it: an operator does not either, and the two must not disagree.
    """
    model = resource_.spec.model
    if not resource_.spec.engine.extra_args.words or model.draft_geometry is not None:
        return ModelConfig()
    from kvtier_operator.planning.arguments.speculation import speculation  # noqa: PLC0415 - few resources need it

    asked = speculation(resource_.spec.engine.extra_args)
    if asked is None or asked.model is None or not Path(asked.model).is_dir():
        return ModelConfig()
    return from_path(Path(asked.model), "spec.engine.extraArgs")


def _folder(model: ModelSpec) -> tuple[Path, str]:
    """A folder of this machine that may have the model, and the field that names it."""
    from kvtier_operator.planning.weights.pod_weights import SourceKind, model_source  # noqa: PLC0415 - loads the planner

    source = model_source(model)
    if source is not None and source.kind is SourceKind.NODE:
        return Path(source.place), "spec.model.source"
    return Path(model.name), "spec.model.name"


def _machine(resource_: KVCacheTier, run_folder: Path | None) -> Machine:
    """This machine, with the disk on which a run would have its tier, and what an earlier one left there."""
    disk = resource_.spec.tiers.disk
    if disk is not None and disk.volume.host_path is not None:
        from kvtier_operator.planning.backends.kvtier import FOLDER  # noqa: PLC0415 - loads the planner

        place = Path(disk.volume.host_path.path)
        return this_machine(place, (place / FOLDER,))
    if run_folder is None:
        return this_machine(state_folder())
    return this_machine(run_folder, volume_folders(run_folder))
