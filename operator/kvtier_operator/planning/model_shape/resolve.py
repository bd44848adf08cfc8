"""Where a model's shape comes from: the resource, then the model's own config.json, then the catalogue."""

from dataclasses import replace

from kvtier_operator.api.spec.model import ModelSpec
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.from_spec import shape_from_spec
from kvtier_operator.planning.model_shape.shape import CATALOGUE, ModelShape
from kvtier_operator.planning.observed import Observed


def resolve_shape(model: ModelSpec, observed: Observed) -> ModelShape:
    """Shape of the model, from the first source that has one.

    Raises:
        InvalidInputError: Nothing knows the model, or its config.json cannot be sized.
    """
    if model.geometry is not None:
        return shape_from_spec(model.geometry)
    if observed.model_config is not None:
        source = observed.model_config_source or "config.json"
        read = shape_from_config(observed.model_config, source, weights_bytes=observed.weights_bytes)
        return _with_arithmetic(read, model.name) if source.startswith(CATALOGUE) else read
    if model.config_ref is not None:
        missing = observed.model_config_missing or f"ConfigMap {model.config_ref.name} was not looked for"
        raise InvalidInputError("", Problem("spec.model.configRef", missing))
    # PyYAML costs 20 ms to import and the catalogue as much to read: not for those who need neither.
    from kvtier_operator.planning.model_shape.catalogue import similar  # noqa: PLC0415
    from kvtier_operator.planning.model_shape.from_catalogue import (  # noqa: PLC0415
        shape_from_catalogue,
    )

    shape = shape_from_catalogue(model.name)
    if shape is None:
        near = similar(model.name)
        hint = f" (the catalogue has {' and '.join(near)})" if near else ""
        raise InvalidInputError(
            "",
            Problem(
                "spec.model.name",
                f"nothing knows the KV geometry of {model.name!r}{hint}{_also(observed)}; put its "
                "config.json into a ConfigMap and name that in spec.model.configRef, or set "
                "spec.model.geometry (kvtier plan also takes --model-config FILE, and --hub where the "
                "operator has modelConfigs: hub)",
            ),
        )
    return shape


def _with_arithmetic(shape: ModelShape, name: str) -> ModelShape:
    """The catalogue's fields, overridden, do not tell what computes one token; its entry does.

    Nor do they say how many experts there are.
    """
    from kvtier_operator.planning.model_shape.catalogue import (  # noqa: PLC0415 - as above
        arithmetic_in_catalogue,
        entry_of,
    )

    dense = "experts_share" not in (entry_of(name) or {})
    return replace(
        shape, arithmetic=arithmetic_in_catalogue(name), matrices=shape.matrices if dense else None
    )


def _also(observed: Observed) -> str:
    return f"; {observed.model_config_missing}" if observed.model_config_missing else ""
