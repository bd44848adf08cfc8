"""Reads a model's configuration from a file, a folder or Hugging Face."""

from collections.abc import Mapping
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from typing import Any, Final

from kvtier_common.errors import KvtierError
from kvtier_operator.api.spec.model import ModelSpec
from kvtier_operator.cli.inputs.whole_file import read_regular
from kvtier_operator.errors import InvalidInputError, Problem
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

_MISTRAL_WEIGHTS: Final = "consolidated*.safetensors"

ConfigMaps = Mapping[tuple[str, str], tuple[str, Mapping[str, Any]]]
"""ConfigMaps by namespace and name, each with where it came from."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What was found of a model.

    Attributes:
        config: Its config.json with what stands beside it; None where nothing was found.
        source: Where it came from, for the report.
        weights_bytes: Size of its weight files; None if they were not seen.
        missing: Why it could not be had, where it was looked for by name.
    """

    config: Mapping[str, Any] | None = None
    source: str = ""
    weights_bytes: int | None = None
    missing: str = ""


def from_path(path: Path, field: str) -> ModelConfig:
    """From a config.json or params.json and what stands beside it, or a folder with them.

    Raises:
        InvalidInputError: One of them cannot be read, or is not what its name says.
    """
    folder = path if path.is_dir() else path.parent
    if path.is_dir():
        found = [folder / name for name in FILES if lexists(folder / name)]
        if not {CONFIG, PARAMS} & {each.name for each in found}:
            raise InvalidInputError(
                str(path), Problem(field, f"cannot be read: it has neither {CONFIG} nor {PARAMS}")
            )
    else:
        beside = folder / QUANTIZATION
        found = [path, *((beside,) if lexists(beside) and beside.name != path.name else ())]
    files = {each.name: _read(each, field) for each in found}
    if not path.is_dir():  # whatever it is called
        files[PARAMS if path.name == PARAMS else CONFIG] = files.pop(path.name)
    mistral = path.is_dir() and any(folder.glob(_MISTRAL_WEIGHTS))
    return ModelConfig(one_config(files, mistral=mistral), _source(path, folder, files), weights_in(folder))


def from_config_map(key: tuple[str, str], config_maps: ConfigMaps) -> ModelConfig:
    """From the ConfigMap that the resource names, by namespace and name.

    Raises:
        InvalidInputError: It holds no configuration.
    """
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
    from kvtier_operator.planning.model_shape.from_catalogue import shape_from_catalogue  # noqa: PLC0415 - slow to import

    if shape_from_catalogue(model.name) is not None:
        return ModelConfig()  # known without asking anyone
    try:
        import asyncio  # noqa: PLC0415 - as below

        from huggingface_hub.constants import HF_HUB_OFFLINE  # noqa: PLC0415 - slow to import
        from huggingface_hub.utils import build_hf_headers  # noqa: PLC0415 - as above

        from kvtier_operator.reconcile.observe.huggingface import HubClient  # noqa: PLC0415 - needs aiohttp

        known = _cached(model)
    except ImportError:
        return ModelConfig()
    if HF_HUB_OFFLINE:
        is_known = bool({CONFIG, PARAMS} & known.keys())
        return (
            ModelConfig(one_config(known), f"{model.name}, {names_of(known)}") if is_known else ModelConfig()
        )
    hub = HubClient(build_hf_headers().get("authorization", ""))
    try:
        return ModelConfig(*asyncio.run(hub.config(model.name, model.revision, known)))
    except KvtierError as error:
        if isinstance(error, InvalidInputError):
            raise
        return ModelConfig(missing=str(error))


def weights_in(folder: Path) -> int | None:
    """Bytes of the weight files in a folder, safetensors before the older format; None without any."""
    for pattern in (_MISTRAL_WEIGHTS, "*.safetensors", "pytorch_model*.bin"):
        if sizes := [path.stat().st_size for path in folder.glob(pattern) if path.is_file()]:
            return sum(sizes)
    return None


def _cached(model: ModelSpec) -> dict[str, Mapping[str, Any]]:
    """Files of the model that were downloaded before, by vLLM say."""
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 - slow to import
    from huggingface_hub.errors import HFValidationError  # noqa: PLC0415 - as above

    try:
        found = {file: try_to_load_from_cache(model.name, file, revision=model.revision) for file in FILES}
    except HFValidationError:
        return {}  # a folder
    return {
        file: _read(Path(path), "spec.model.name") for file, path in found.items() if isinstance(path, str)
    }


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
