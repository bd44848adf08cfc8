"""The shape of a model of the catalogue, whose entries have fields of its config.json."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kvtier_operator.planning.model_shape.catalogue import arithmetic_of_entry, entries, entry_of, names
from kvtier_operator.planning.model_shape.config.quantised_names import quantised
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.parameters.experts import Experts
from kvtier_operator.planning.model_shape.shape import CATALOGUE, ModelShape


def shape_from_catalogue(model: str) -> ModelShape | None:
    """The shape of a model of the catalogue; None for a model that is not in it."""
    fields = entry_of(model)
    if fields is None:
        return _of_quantised(model)
    shape = shape_from_config(
        fields["config"], f"{CATALOGUE}, {fields['source']}", weights_bytes=fields.get("weights_bytes")
    )
    return _with_weights(shape, fields)


def _of_quantised(model: str) -> ModelShape | None:
    """The shape of a quantised checkpoint of a model of the catalogue, whose weights are smaller."""
    found = quantised(model, names())
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
        arithmetic=arithmetic_of_entry(fields),
        # its config does not say how many experts there are
        matrices=shape.matrices if share is None else None,
    )
