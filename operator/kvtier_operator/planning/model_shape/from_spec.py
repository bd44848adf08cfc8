"""The shape that the resource itself gives, in `spec.model.geometry`."""

from typing import Final

from kvtier_operator.api.spec.model import GeometrySpec
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind, ModelShape
from kvtier_operator.planning.model_shape.state import Recurrence, State

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
