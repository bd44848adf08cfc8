"""What --hf-overrides in spec.engine.extraArgs makes of a model's configuration, as vLLM does it.

A value takes a field's place; a mapping is merged into a part that is a configuration of its own, such as
`text_config`. Source: vllm/config/model.py (_apply_dict_overrides, _update_nested), 0.32 and 0.33.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.model_shape.config.engine_data.defaults import (
    is_known_type,
    nested_type,
    read_once,
    works_out_head_dim,
)
from kvtier_operator.planning.model_shape.config.fields import TEXT_CONFIGS
from kvtier_operator.planning.observed import Observed

OPTION: Final = "--hf-overrides"
_PART: Final = "_config"
_TEXT: Final = "text_config"
_NO_PARTS: Final = frozenset({"quantization_config", "compression_config"})
"""Mappings that transformers keeps as they are."""


def with_overrides(spec: Spec, observed: Observed) -> Observed:
    """The same facts, with the configuration that the engine reads: from what was seen or the catalogue."""
    overrides = spec.engine.extra_args.json_object(OPTION)
    if not overrides or spec.model.geometry is not None:
        return observed
    if observed.model_config is not None:
        source = observed.model_config_source or "config.json"
        config, weights_bytes = observed.model_config, observed.weights_bytes
    else:
        # as in resolve.py: not for those who need it not
        from kvtier_operator.planning.model_shape.catalogue import entry_of  # noqa: PLC0415 - slow to import

        entry = entry_of(spec.model.name)
        if entry is None:
            return observed
        source = f"catalogue, {entry['source']}"
        overrides = _of_language_model(entry["config"], overrides)
        config, weights_bytes = entry["config"], observed.weights_bytes or entry.get("weights_bytes")
    return replace(
        observed,
        model_config=_merge(config, overrides),
        model_config_source=f"{source} with {OPTION}",
        weights_bytes=weights_bytes,
    )


def with_option_named(error: InvalidInputError, spec: Spec) -> InvalidInputError:
    """The same error, with the argument named where the wrong field came by it."""
    args = spec.engine.extra_args
    overrides = args.json_object(OPTION)
    within = [part for name, part in overrides.items() if name in TEXT_CONFIGS and isinstance(part, Mapping)]
    names = {*overrides, *(name for part in within for name in part)}
    if not all(re.split(r"[.\[]", problem.field)[0] in names for problem in error.problems):
        return error
    messages = (f"{OPTION}: {problem}" for problem in error.problems)
    return InvalidInputError("planning", *(Problem(args.field_path(OPTION), message) for message in messages))


# transformers, configuration_gemma4.py: sizes of full-attention layers, which vLLM reads layer by layer.
_OF_GEMMA4: Final = frozenset({"attention_k_eq_v", "global_head_dim", "num_global_key_value_heads"})
_WIDTH, _HEADS, _HEAD_DIM = "hidden_size", "num_attention_heads", "head_dim"


def _still_read(
    part: Mapping[str, Any], overrides: Mapping[str, Any], type_without_saying: str = ""
) -> dict[str, Any]:
    """Those that change a part once it is a configuration, beside what its class has worked out by then.

    Source: vLLM, config/model.py, ModelConfig.__post_init__.
    """
    model_type = str(part.get("model_type") or type_without_saying)
    late = read_once(model_type) | (_OF_GEMMA4 if model_type.startswith("gemma4") else frozenset())
    read = {name: value for name, value in overrides.items() if name not in late}
    width, heads = part.get(_WIDTH), part.get(_HEADS)
    worked_out = works_out_head_dim(model_type) and part.get(_HEAD_DIM) is None
    if worked_out and {_WIDTH, _HEADS} & set(read) and type(width) is int and type(heads) is int and heads:
        read.setdefault(_HEAD_DIM, width // heads)
    return read


def _merge(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> Mapping[str, Any]:
    root_type = str(config.get("model_type") or "")
    lacks_it = is_known_type(root_type) and _TEXT not in config and not nested_type(root_type, _TEXT)
    if lacks_it and isinstance(overrides.get(_TEXT), Mapping):
        raise InvalidInputError(
            "planning", Problem(_TEXT, f"the model's configuration has no {_TEXT}: name its fields alone")
        )
    parts = {name for name in config if name.endswith(_PART) and name not in _NO_PARTS}
    changed = {
        name: _update(config[name], value, nested_type(root_type, name)) if name in parts else value
        for name, value in _still_read(config, overrides).items()
        if name in config or name not in TEXT_CONFIGS  # vLLM reads no part that the file lacks
    }
    return {**config, **changed}


def _of_language_model(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> Mapping[str, Any]:
    """Overrides of a nested language model, which stands by itself in the catalogue."""
    if any(name in config for name in TEXT_CONFIGS):
        return overrides
    flat = {name: value for name, value in overrides.items() if name not in TEXT_CONFIGS}
    for name in overrides:
        within = overrides[name]
        if name in TEXT_CONFIGS and isinstance(within, Mapping):
            flat |= within
    return flat


def _update(part: object, value: object, type_without_saying: str = "") -> object:
    if not (isinstance(part, Mapping) and isinstance(value, Mapping)):
        return value
    read = _still_read(part, value, type_without_saying)
    return {**part, **{name: _update(part.get(name), inner) for name, inner in read.items()}}
