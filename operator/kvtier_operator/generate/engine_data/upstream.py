"""The one place of the generators that touches what vLLM, Transformers and argparse have not promised.

A table that a newer release has elsewhere is looked for here only.

Source: vLLM 0.32 and 0.33, models/registry.py and models/config.py in vllm/model_executor,
vllm/transformers_utils/config.py, vllm/engine/arg_utils.py, vllm/utils/argparse_utils.py.
"""

import hashlib
import importlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

GENERATOR: Final = "generator"
"""Beside the packages in `generated_from`."""
_DIGITS: Final = 12
_OF_LIBRARY: Final = ("_TRANSFORMERS_SUPPORTED_MODELS", "_TRANSFORMERS_BACKEND_MODELS")
_POOLING: Final = (
    "_EMBEDDING_MODELS",
    "_LATE_INTERACTION_MODELS",
    "_REWARD_MODELS",
    "_TOKEN_CLASSIFICATION_MODELS",
    "_SEQUENCE_CLASSIFICATION_MODELS",
)
# Groups of options are named after the configuration that they go into (engine/arg_utils.py).
_ALWAYS_MADE: Final = (
    "ModelConfig",
    "LoadConfig",
    "ParallelConfig",
    "CacheConfig",
    "ObservabilityConfig",
    "SchedulerConfig",
    "OffloadConfig",
)
# Of images: an engine of text alone passes over them, and nobody means less than nothing by one.
_OF_IMAGES: Final = "MultiModalConfig"
_BOUNDS: Final = ("ge", "gt", "le", "lt")
# Of the server: entrypoints/cli/serve.py (without one it serves nothing), validate_parsed_serve_args.
_SERVERS_BOUNDS: Final = {
    "--api-server-count": {"ge": 1},
    "-asc": {"ge": 1},
    "--sse-keep-alive-interval": {"ge": 0},
}
_OR_NONE: Final = "_optional_type"
_WRAPPERS: Final = (_OR_NONE, "_parse_type")
_WINDOW: Final = "sliding_window"
_NESTS: Final = "init_vllm_registered_model"
_SIBLINGS: Final = re.compile(
    r"^from (?:\.|vllm\.model_executor\.models\.)(\w+) import (\([^)]*\)|[^\n]*)", re.MULTILINE
)
_LAYERS: Final = re.compile(r"\w*(Attention|DecoderLayer|Model|ForCausalLM)\b")


def sources(*packages: str) -> dict[str, str]:
    """What a file is generated from: the versions of these packages, and the generators themselves.

    Raises PackageNotFoundError: One of them is not installed.
    """
    return {**{package: version(package) for package in packages}, GENERATOR: generator_digest()}


def generator_digest() -> str:
    """Tells the generators of one file from those of another day."""
    own = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return hashlib.sha256(own).hexdigest()[:_DIGITS]


def own_architectures() -> frozenset[str]:
    """Those that the imported vLLM has a class of its own for."""
    return frozenset(_registry()._VLLM_MODELS) - library_architectures()


def media_architectures() -> frozenset[str]:
    """Those whose class takes images, video or sound beside text."""
    return frozenset(_registry()._MULTIMODAL_MODELS)


def library_architectures() -> frozenset[str]:
    """Those that it names itself as served by classes of the Transformers library."""
    return frozenset(name for table in _OF_LIBRARY for name in getattr(_registry(), table))


def removed_architectures() -> Mapping[str, str]:
    """Those that it serves no more, and the last version that did.

    Without those that the Transformers library has a class of which vLLM runs.
    """
    library = importlib.import_module("transformers")
    table: Mapping[str, str] = _registry()._PREVIOUSLY_SUPPORTED_MODELS
    return {name: last for name, last in table.items() if not _runs(getattr(library, name, None))}


def pooling_models() -> Iterator[tuple[str, Any, Any]]:
    """Architectures that may pool: each with what vLLM asks its class, and how it corrects configurations."""
    registry = _registry()
    corrections = importlib.import_module("vllm.model_executor.models.config").MODELS_CONFIG_MAP
    for architecture in {name for table in _POOLING for name in getattr(registry, table)}:
        try:
            model = registry.ModelRegistry.models[architecture].load_model_cls()
        except ModuleNotFoundError:
            continue  # of a package that the engine's image lacks too
        yield architecture, registry._ModelInfo.from_model_cls(model), corrections.get(architecture)


def masked_models() -> Mapping[str, str]:
    """Classes with which the Transformers library fills masks, by model type."""
    names: Mapping[str, str] = importlib.import_module(
        "transformers.models.auto.modeling_auto"
    ).MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return names


def types_without_windows() -> Iterator[str]:
    """Types of language models whose own class in vLLM gives no layer a window of its own.

    Neither its module nor one that it takes layers from names a window; those that nest another model are
    left out, for that one may.
    """
    models = importlib.import_module(
        "transformers.models.auto.modeling_auto"
    ).MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    registry = _registry()
    for model_type, architecture in models.items():
        if module := registry._VLLM_MODELS.get(architecture):
            folder = Path(registry.__file__).parent
            if not _names_a_window(folder, module[0], set()):
                yield model_type


def _names_a_window(folder: Path, module: str, seen: set[str]) -> bool:
    seen.add(module)
    path = folder / f"{module}.py"
    text = path.read_text(encoding="utf-8") if path.exists() else _WINDOW  # one that stands elsewhere
    taken = {name for name, names in _SIBLINGS.findall(text) if _LAYERS.search(names)} - seen
    return (
        _WINDOW in text
        or _NESTS in text
        or any(_names_a_window(folder, name, seen) for name in sorted(taken))
    )


@dataclass(frozen=True, slots=True)
class QuantizationMethod:
    """One that the imported vLLM has."""

    name: str
    deprecated: bool  # whether it loads such a model only when told so
    dtypes: tuple[str, ...]  # what a model may compute in with it


def quantization_methods() -> Iterator[QuantizationMethod]:
    """All of them."""
    table = importlib.import_module("vllm.model_executor.layers.quantization")
    for name in table.QUANTIZATION_METHODS:
        method = table.get_quantization_config(name).get_supported_act_dtypes
        dtypes = method() if hasattr(method, "__self__") else method(None)  # some forgot `classmethod`
        yield QuantizationMethod(
            name,
            name in table.DEPRECATED_QUANTIZATION_METHODS,
            tuple(str(dtype).removeprefix("torch.") for dtype in dtypes),
        )


def config_classes() -> Iterator[tuple[str, Any]]:
    """Configuration classes as vLLM looks for them: transformers' by model type, its own before those."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # some classes ask for others' files
    library = importlib.import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    own = importlib.import_module("vllm.transformers_utils.config")._CONFIG_REGISTRY
    for model_type in (*library, *own):
        yield model_type, (own if model_type in own else library)[model_type]


def options(parser: Any) -> Mapping[str, Any]:  # noqa: ANN401 - vLLM has no types
    """Argparse's own account of each option, by its name."""
    actions: Mapping[str, Any] = parser._option_string_actions
    return actions


def bounds_of(parser: Any) -> Mapping[str, Mapping[str, float]]:  # noqa: ANN401 - as above
    """Bounds of numbers by option name, as pydantic has them: `{"ge": 1}`.

    Of the configurations that every engine makes, and of images: that of adapters not every engine does.
    """
    configurations, bounds = importlib.import_module("vllm.config"), dict(_SERVERS_BOUNDS)
    for group in parser._action_groups:
        is_made = group.title in {*_ALWAYS_MADE, _OF_IMAGES}
        fields = _fields(getattr(configurations, group.title)) if is_made else {}
        for action in group._group_actions:
            field = fields.get(action.dest)
            limits = {
                name: getattr(limit, name)
                for limit in (field.metadata if field else ())
                if (name := type(limit).__name__.lower()) in _BOUNDS
            }
            bounds.update(dict.fromkeys(action.option_strings, limits) if limits else {})
    return bounds


def _fields(configuration: Any) -> Mapping[str, Any]:  # noqa: ANN401 - as above
    """Its own, and those of configurations within it, whose options are of the same group."""
    own = configuration.__pydantic_fields__
    within = (getattr(field.annotation, "__pydantic_fields__", {}) for field in own.values())
    return {**{name: inner for part in within for name, inner in part.items()}, **own}


def load_formats() -> list[str]:
    """What --load-format takes, unless a plugin brings more."""
    return sorted(importlib.import_module("vllm.model_executor.model_loader")._LOAD_FORMAT_TO_MODEL_LOADER)


def converter_of(convert: Any) -> tuple[str, bool]:  # noqa: ANN401 - as above
    """Name of what reads an option's value, and whether it reads None too: vLLM wraps it."""
    name = getattr(convert, "__name__", "")
    if name not in _WRAPPERS:
        return name, False
    [inner] = [cell.cell_contents for cell in convert.__closure__]
    innermost, or_none = converter_of(inner)
    return innermost, or_none or name == _OR_NONE


def _runs(cls: Any) -> bool:  # noqa: ANN401 - of a package without types
    return cls is not None and (cls.is_backend_compatible() or cls._can_set_attn_implementation())


def _registry() -> Any:  # noqa: ANN401 - as above
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    return importlib.import_module("vllm.model_executor.models.registry")
