"""The shape of the resource's model: from its own fields, the catalogue, or its config.json."""

from typing import Final

from kvtier_operator.api.spec.model import GeometrySpec, ModelSpec
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.shape import (
    CATALOGUE,
    LayerGroup,
    LayerKind,
    ModelShape,
    Recurrence,
    State,
)
from kvtier_operator.planning.observed import Observed

_FIELD: Final = "spec.model.geometry"


def shape_from_spec(geometry: GeometrySpec, field: str = _FIELD) -> ModelShape:
    """The shape written down in a field of the resource, whose rules have made sure that its fields agree."""
    if geometry.kv_bytes_per_token is not None:
        return ModelShape(
            source=f"{field}.kvBytesPerToken",
            groups=(),
            dtype_bytes=geometry.dtype_bytes,
            bytes_per_token=geometry.kv_bytes_per_token,
        )
    layers = geometry.layers or 0
    sliding = geometry.sliding_window_layers or (layers if geometry.sliding_window else 0)
    groups = [
        _attention(geometry, layers - sliding, 0),
        _attention(geometry, sliding, geometry.sliding_window or 0),
        LayerGroup(
            LayerKind.STATE,
            geometry.linear_layers or 0,
            kv_heads=0,
            key_dim=0,
            value_dim=0,
            state=State(
                recurrent_elements=geometry.state_bytes_per_layer or 0,
                recurrent_bytes=1,
                recurrence=Recurrence.OWN,
            ),
        ),
    ]
    return ModelShape(
        source=field,
        groups=tuple(group for group in groups if group.layers),
        dtype_bytes=geometry.dtype_bytes,
    )


def _attention(geometry: GeometrySpec, layers: int, window_tokens: int) -> LayerGroup:
    if geometry.kv_lora_rank is not None:
        return LayerGroup(
            LayerKind.MLA,
            layers,
            kv_heads=1,
            key_dim=geometry.kv_lora_rank + (geometry.qk_rope_head_dim or 0),
            value_dim=0,
        )
    key_dim = geometry.head_dim or 0
    return LayerGroup(
        LayerKind.SLIDING if window_tokens else LayerKind.FULL,
        layers,
        kv_heads=geometry.kv_heads or 0,
        key_dim=key_dim,
        value_dim=geometry.value_head_dim or key_dim,
        window_tokens=window_tokens,
    )


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
        return _with_weights(read, model.name) if source.startswith(CATALOGUE) else read
    if model.config_ref is not None:
        missing = observed.model_config_missing or f"ConfigMap {model.config_ref.name} was not looked for"
        raise InvalidInputError("", Problem("spec.model.configRef", missing))
    # PyYAML costs 20 ms to import and the catalogue as much to read: not for those who need neither.
    from kvtier_operator.planning.model_shape.from_catalogue import shape_from_catalogue  # noqa: PLC0415 - slow to import
    from kvtier_operator.planning.model_shape.unknown import unknown_model  # noqa: PLC0415 - as above

    shape = shape_from_catalogue(model.name)
    if shape is None:
        raise unknown_model(model.name, observed.model_config_missing)
    return shape


def _with_weights(shape: ModelShape, name: str) -> ModelShape:
    """The catalogue's fields, overridden, do not tell what its entry does of the weights."""
    from kvtier_operator.planning.model_shape.catalogue import entry_of  # noqa: PLC0415 - slow to import
    from kvtier_operator.planning.model_shape.from_catalogue import with_weights  # noqa: PLC0415 - as above

    return with_weights(shape, entry_of(name) or {})
