"""The catalogue of well-known models: data beside this file, read through the config.json reader."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, Final

import yaml

from kvtier_operator.planning.model_shape.config.quantised_names import quantised
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.parameters.arithmetic import Arithmetic
from kvtier_operator.planning.model_shape.parameters.experts import Experts
from kvtier_operator.planning.model_shape.shape import CATALOGUE, ModelShape

_BYTES_PER_PARAMETER: Final = 2
"""Of the catalogue's weights, where it says no number of parameters."""


@cache
def entries() -> Mapping[str, Mapping[str, Any]]:
    """Every entry of `catalogue.yaml`, by repository."""
    text = files(__package__).joinpath("catalogue.yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    catalogue: dict[str, Mapping[str, Any]] = yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader, in C
    return catalogue


@cache
def _names() -> Mapping[str, str]:
    """Entry by repository or alias, in lower case: Hugging Face ids are not case-sensitive."""
    names = {}
    for entry, fields in entries().items():
        for name in (entry, *fields.get("aliases", ())):
            names[name.lower()] = entry
    return names


def entry_of(model: str) -> Mapping[str, Any] | None:
    """What the catalogue has of a model; None for a model that is not in it."""
    name = _names().get(model.lower())
    return None if name is None else entries()[name]


def shape_from_catalogue(model: str) -> ModelShape | None:
    """The shape of a model of the catalogue; None for a model that is not in it."""
    fields = entry_of(model)
    if fields is None:
        return _of_quantised(model)
    shape = shape_from_config(
        fields["config"], f"{CATALOGUE}, {fields['source']}", weights_bytes=fields.get("weights_bytes")
    )
    return _with_weights(shape, fields)


def arithmetic_in_catalogue(model: str) -> Arithmetic | None:
    """What computes one token of a model; None for one that is not in the catalogue."""
    entry = entry_of(model)
    return None if entry is None else _arithmetic(entry)


def config_in_catalogue(model: str) -> Mapping[str, Any] | None:
    """The fields of its config.json that the catalogue has; None for a model that is not in it."""
    entry = entry_of(model)
    return None if entry is None else entry["config"]


def _of_quantised(model: str) -> ModelShape | None:
    """The shape of a quantised checkpoint of a model of the catalogue, whose weights are smaller."""
    found = quantised(model, _names())
    if found is None:
        return None
    fields = entries()[found.entry]
    config = {**fields["config"], "quantization_config": found.quantization}
    return _with_weights(shape_from_config(config, f"{CATALOGUE}, {fields['source']}, quantised"), fields)


def _with_weights(shape: ModelShape, fields: Mapping[str, Any]) -> ModelShape:
    """The shape with what the entry says of the weights, whose config has the fields of the cache alone."""
    share = fields.get("experts_share")
    return replace(
        shape,
        experts=shape.experts if share is None else Experts.by_share(share),
        is_quantised=shape.is_quantised or fields.get("is_quantised", False),
        arithmetic=_arithmetic(fields),
    )


def _arithmetic(fields: Mapping[str, Any]) -> Arithmetic | None:
    """What computes one token: quantised or not, the same number of parameters."""
    if (published := fields.get("active_parameters")) is not None:
        return Arithmetic(published, "the catalogue, as published")
    if (weights_bytes := fields.get("weights_bytes")) is None:
        return None
    return Arithmetic(weights_bytes // _BYTES_PER_PARAMETER, "the catalogue, all for every token")


def similar(model: str) -> tuple[str, ...]:
    """Names in the catalogue that are close to this one, as they are published, the closest first."""
    repository = "/".join(model.lower().split("/")[-2:])  # whatever a host or a folder before it
    near = get_close_matches(repository, _names(), n=2, cutoff=0.75)
    published = {
        name.lower(): name
        for entry, fields in entries().items()
        for name in (entry, *fields.get("aliases", ()))
    }
    return tuple(published[name] for name in near)
