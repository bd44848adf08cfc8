"""A model's files: read, put into the words of most, made one, and kept as small as decides its shape."""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.model_shape.config.engine_data.defaults import MOST_LAYERS

_NAMES: Final = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
}
_LONGEST_SEQUENCE: Final = 128_000  # where the file does not say it


def is_mistral_params(config: Mapping[str, Any]) -> bool:
    """Whether these are Mistral's names: other files with `n_layers` give a `hidden_size` or a `d_model`."""
    return "dim" in config and "n_layers" in config and "hidden_size" not in config


def from_mistral_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The same file in config.json's names."""
    config = {_NAMES.get(name, name): value for name, value in params.items()}
    config["max_position_embeddings"] = params.get("max_position_embeddings") or _LONGEST_SEQUENCE
    config["model_type"] = "deepseek_v3" if params.get("qk_nope_head_dim") else params.get("model_type")
    windows = params.get("sliding_window")
    if isinstance(windows, list) and windows:
        kinds = ["full_attention" if window is None else "sliding_attention" for window in windows]
        layers = params["n_layers"]
        if isinstance(layers, int) and 0 < layers <= MOST_LAYERS:  # what else it is, is refused by its name
            config["layer_types"] = kinds * (layers // len(windows))
        config["sliding_window"] = next((window for window in windows if window), None)
    quantization = params.get("quantization")
    if isinstance(quantization, Mapping) and quantization.get("quant_method"):
        config["quantization_config"] = quantization
    elif isinstance(quantization, Mapping) and quantization.get("qformat_weight") == "fp8_e4m3":
        config["quantization_config"] = {"quant_method": "fp8"}
    return config


_MOONDREAM3: Final = "moondream3"
# Its own name of each field, and what the class takes where a file leaves it out.
_FIELDS: Final = (
    ("hidden_size", "dim", 2048),
    ("num_hidden_layers", "n_layers", 24),
    ("num_attention_heads", "n_heads", 32),
    ("num_key_value_heads", "n_kv_heads", 32),
    ("max_position_embeddings", "max_context", 4096),
)


def is_moondream3(config: Mapping[str, Any]) -> bool:
    """Whether a whole file is of this type."""
    return config.get("model_type") == _MOONDREAM3


def from_moondream3(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same file with its language model where others have it."""
    parts = config.get("config")
    text = (parts.get("text") if isinstance(parts, Mapping) else None) or config.get("text_config")
    part = text if isinstance(text, Mapping) else {}
    fields = {name: part.get(name, part.get(own, default)) for name, own, default in _FIELDS}
    return {**config, "text_config": fields}


CONFIG: Final = "config.json"
PARAMS: Final = "params.json"
QUANTIZATION: Final = "hf_quant_config.json"
FILES: Final = (CONFIG, PARAMS, QUANTIZATION)
MOST_BYTES: Final = 2 << 20
"""Of one of them: the longest that are published name each layer that is not quantized, in some 100 KB."""
_DEEPEST: Final = 32


def parse_file(text: str, source: str, field: str) -> Mapping[str, Any]:
    """One of these files.

    Raises:
        InvalidInputError: It is no JSON object.
    """
    try:
        # Nemotron-H and Mamba 2 are published with an Infinity
        document = parse_json(text, most_bytes=MOST_BYTES, deepest=_DEEPEST, finite=False)
    except MalformedError as error:
        raise InvalidInputError(
            source, Problem(field, f"not JSON: {error}; give the model's own file")
        ) from error
    if not isinstance(document, dict):
        raise InvalidInputError(
            source,
            Problem(field, "not the file of a model: it holds no JSON object; give the model's own file"),
        )
    return document


def one_config(files: Mapping[str, Mapping[str, Any]], *, mistral: bool = False) -> dict[str, Any]:
    """All of a model's files as one config.json (vLLM, transformers_utils/config.py, get_config).

    Args:
        files: Parsed, by name; config.json or params.json among them.
        mistral: Whether the weights are in Mistral's own format, for which vLLM reads params.json first.
    """
    config = dict(files.get(CONFIG, {}))
    params = files.get(PARAMS)
    if params is not None and (mistral or not config):
        longest = config.get("max_position_embeddings")
        with_length = params if longest is None else {"max_position_embeddings": longest, **params}
        config |= from_mistral_params(with_length)
    if config.get("quantization_config") is None and QUANTIZATION in files:
        config["quantization_config"] = files[QUANTIZATION]
    return config


def names_of(files: Collection[str]) -> str:
    """Their names for a reader, in the order in which they count."""
    return " and ".join(name for name in FILES if name in files)


def config_of_map(document: Mapping[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """The configuration that a ConfigMap holds, and where it came from, for the report.

    Args:
        document: The ConfigMap.
        name: What to call it.

    Raises:
        InvalidInputError: It holds none, or something else under its name.
    """
    data = document.get("data")
    texts = data if isinstance(data, Mapping) else {}
    files = {
        file: parse_file(str(texts[file]), name, f"data[{file}]")
        for file in FILES
        if texts.get(file) is not None
    }
    if not {CONFIG, PARAMS} & set(files):
        raise InvalidInputError(
            name, Problem("data", f"has neither {CONFIG} nor {PARAMS}: make it of the model's own file")
        )
    return one_config(files), f"{name}, {names_of(files)}"


MOST_COMPACT_BYTES: Final = 16 << 10
_LONG_BYTES: Final = 6 << 10
"""Of one list or object: names of modules that are not quantised and labels of classes are longer, a list of
one word a layer is not."""


def compact(config: Mapping[str, Any], source: str) -> str:
    """The file as JSON without its long parts, which nothing about the cache depends on.

    Raises:
        InvalidInputError: It is long all the same.
    """
    text = json.dumps(_without_long(config), separators=(",", ":"))
    if len(text) > MOST_COMPACT_BYTES:
        most = f"more than the {MOST_COMPACT_BYTES >> 10} KiB kept of one"
        problem = f"has {len(text) >> 10} KiB beside its lists, {most}"
        raise InvalidInputError(
            source, Problem("spec.model.configRef", f"{problem}: leave out what does not describe layers")
        )
    return text


def _without_long(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, Mapping):
        inner = {name: _without_long(item) for name, item in value.items()}
        return {name: item for name, item in inner.items() if not _is_long(item)}
    return value


def _is_long(value: object) -> bool:
    return isinstance(value, list) and len(json.dumps(value, separators=(",", ":"))) > _LONG_BYTES
