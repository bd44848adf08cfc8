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
from kvtier_operator.planning.model_shape.config.fields import TEXT_CONFIGS
from kvtier_operator.planning.observed import Observed

OPTION: Final = "--hf-overrides"
_PART: Final = "_config"
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
    within = [each for name, each in overrides.items() if name in TEXT_CONFIGS and isinstance(each, Mapping)]
    names = {*overrides, *(name for each in within for name in each)}
    if not all(re.split(r"[.\[]", problem.field)[0] in names for problem in error.problems):
        return error
    messages = (f"{OPTION}: {problem}" for problem in error.problems)
    return InvalidInputError("planning", *(Problem(args.field_path(OPTION), each) for each in messages))


def _merge(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> Mapping[str, Any]:
    parts = {name for name in config if name.endswith(_PART) and name not in _NO_PARTS}
    changed = {
        name: _update(config[name], value) if name in parts else value
        for name, value in overrides.items()
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


def _update(part: object, value: object) -> object:
    if not (isinstance(part, Mapping) and isinstance(value, Mapping)):
        return value
    return {**part, **{name: _update(part.get(name), inner) for name, inner in value.items()}}
