"""What tells a model's weights, and how it prepares images, from others', without reading all of them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from vllm.config import ModelConfig

from kvtier_connector.vllm.upstream.identity import commit_of

_PATTERNS: Final = (
    "*.safetensors",
    "*.bin",
    "*.pt",
    "*.pth",
    "*.gguf",
    "*.index.json",
    "adapter_config.json",
    "*processor_config.json",  # what becomes of an image: vLLM's hash of that is of the image as it came
)
_BLOBS: Final = "blobs"
"""Folder of Hugging Face's cache in which a file's name is the hash of its content."""

WeightFacts = dict[str, list[str | int]]


def weights_identity(model: ModelConfig) -> object:
    """Return what tells a model's weights from others, of JSON's types.

    Files of Hugging Face's cache are known by their content's hash, others by size and time of change; a
    model that vLLM fetches itself by its commit. Where only a name is known, the revision asked for has to
    do.
    """
    files = files_identity(Path(model.model_weights or model.model))
    if files is not None:
        return files
    return {"name": model.model, "commit": commit_of(model), "revision": model.revision}


def files_identity(path: Path) -> WeightFacts | None:
    """Return what tells the weights in a file or a folder from others, or None if neither is there."""
    if path.is_file():
        return _facts([path])
    if not path.is_dir():
        return None
    return _facts(sorted(file for pattern in _PATTERNS for file in path.glob(pattern)))


def _facts(files: Iterable[Path]) -> WeightFacts:
    return {file.name: _content(file) for file in files}


def _content(file: Path) -> list[str | int]:
    real = file.resolve()
    about = real.stat()
    if real.parent.name == _BLOBS:
        return [real.name, about.st_size]
    return [about.st_size, about.st_mtime_ns]
