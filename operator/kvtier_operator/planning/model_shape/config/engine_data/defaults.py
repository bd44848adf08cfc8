"""What the engine reads into a config.json that leaves it out, by model type."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

MOST_LAYERS: Final = 10_000
"""As far as spec.model.geometry goes: a plan looks at layers one by one, and must end whatever is asked."""


@dataclass(frozen=True, slots=True)
class TypeDefaults:
    """Defaults of one model type."""

    fields: Mapping[str, Any] = field(default_factory=dict)  # value by field
    other_names: Mapping[str, str] = field(default_factory=dict)  # what the type's files may call a field
    # field that the language model is nested under, and the model type that it has there without saying
    # so; empty where nothing is nested
    nested: Mapping[str, str] = field(default_factory=dict)
    # kinds of layers that repeat themselves, as `layer_types` names them; empty where all are of full
    # attention
    layer_period: tuple[str, ...] = ()
    # kind of the last layer where that is always the same; empty where the period says it
    last_layer: str = ""


def defaults_of(model_type: str) -> TypeDefaults:
    """Defaults of this model type; empty for one that neither transformers nor vLLM has a class of."""
    table = _table()
    fields = table["fields"].get(model_type, {})
    nested = {name: inner["model_type"] for name, inner in fields.items() if isinstance(inner, Mapping)}
    period = table["layer_periods"].get(model_type, {})
    return TypeDefaults(
        fields={name: value for name, value in fields.items() if name not in nested},
        other_names=table["other_names"].get(model_type, {}),
        nested=nested,
        layer_period=tuple(period.get("period", ())),
        last_layer=period.get("last", ""),
    )


@cache
def _table() -> Mapping[str, Any]:
    text = files(__package__).joinpath("defaults.json").read_text(encoding="utf-8")
    table: Mapping[str, Any] = json.loads(text)
    return table
