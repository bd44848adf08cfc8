"""What the engine reads into a config.json that leaves it out, by model type."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kvtier_operator.planning.model_shape.config.engine_data import generated_table

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
    table = generated_table("defaults")
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


# Types that vLLM 0.33 added (transformers_utils/config.py, _CONFIG_REGISTRY), of which there is no package
# for a CPU to generate from.
_ADDED_IN_33: Final = frozenset(
    {"alpamayo2_super", "beam", "dory", "flint", "muse_spark", "muse_spark_dspark", "muse_spark_text"}
    | {"musespark1x_text", "step5", "step5_vl", "ultravbert"}
)


def is_known_type(model_type: str) -> bool:
    """Whether transformers or vLLM has a configuration class of this type."""
    table = generated_table("defaults")
    return model_type in {*table["fields"], *table["without_fields"], *_ADDED_IN_33}


def nested_type(model_type: str, part: str) -> str:
    """Type of the configuration that this type nests under this name; empty where it nests none."""
    inner = generated_table("defaults")["fields"].get(model_type, {}).get(part)
    return str(inner["model_type"]) if isinstance(inner, Mapping) else ""


def read_once(model_type: str) -> frozenset[str]:
    """Fields that the type's class makes others of when a file is read: to change them later does nothing."""
    fields = generated_table("defaults")["fields"].get(model_type, {})
    nested = [inner["model_type"] for inner in fields.values() if isinstance(inner, Mapping)]
    once = generated_table("defaults")["read_once"]
    return frozenset(name for own in (model_type, *nested) for name in once.get(own, ()))


def works_out_head_dim(model_type: str) -> bool:
    """Whether the type's class divides width by heads where a file has no `head_dim`."""
    return model_type in generated_table("defaults")["works_out_head_dim"]
