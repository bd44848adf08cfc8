"""Shapes of published models: the catalogue's, and quantised checkpoints of these by their names.

Only where the name alone says that the cache is not quantised too: AWQ and GPTQ quantise weights, whoever
makes them, and an `-FP8` of the model's own publisher is weights in blocks. Others say it in a file.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kvtier_operator.planning.model_shape.catalogue import arithmetic_of_entry, entries, entry_of, names
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.shape import CATALOGUE, Experts, ModelShape

_WEIGHTS_ALONE: Final = re.compile(r"-(awq|gptq)(-int[48])?$")
_OF_THE_PUBLISHER: Final = re.compile(r"-fp8$")


def shape_from_catalogue(model: str) -> ModelShape | None:
    """The shape of a model of the catalogue; None for a model that is not in it."""
    fields = entry_of(model)
    if fields is None:
        return _of_quantised(model)
    shape = shape_from_config(
        fields["config"], _source(model, fields["source"]), weights_bytes=fields.get("weights_bytes")
    )
    return with_weights(shape, fields)


def _source(model: str, url: str) -> str:
    """Where an entry is from, which may be another repository whose model has the same shape."""
    return f"{CATALOGUE}, {'' if f'/{model}/'.lower() in url.lower() else 'same as '}{url}"


def _of_quantised(model: str) -> ModelShape | None:
    """The shape of a quantised checkpoint of a model of the catalogue, whose weights are smaller."""
    name = model.lower()
    if (entry := names().get(_OF_THE_PUBLISHER.sub("", name))) is not None:
        method = "fp8"
    elif (of_weights := _WEIGHTS_ALONE.search(name)) is not None:
        _, _, base = name[: of_weights.start()].rpartition("/")
        bases = {entry for known, entry in names().items() if known.rpartition("/")[2] == base}
        if len(bases) != 1:
            return None
        entry, method = bases.pop(), of_weights[1]
    else:
        return None
    fields = entries()[entry]
    config = {**fields["config"], "quantization_config": {"quant_method": method}}
    return with_weights(shape_from_config(config, f"{_source(model, fields['source'])}, quantised"), fields)


def with_weights(shape: ModelShape, fields: Mapping[str, Any]) -> ModelShape:
    """The shape with what the entry says of the weights, whose config has the fields of the cache alone."""
    share, bits = fields.get("experts_share"), fields.get("parameter_bits")
    return replace(
        shape,
        experts=shape.experts if share is None else Experts.by_share(share),
        expert_count=shape.expert_count if share is None else fields.get("experts"),
        is_quantised=shape.is_quantised or bits is not None,
        parameter_bits=shape.parameter_bits if shape.is_quantised or bits is None else bits,
        arithmetic=arithmetic_of_entry(fields) or shape.arithmetic,
        # the config of a mixture of experts does not say how many there are
        matrices=shape.matrices if share is None else fields.get("matrices"),
    )
