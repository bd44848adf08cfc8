"""How many parameters compute one token: what tells it, and in what words."""

from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.model_shape.parameters.arithmetic import Arithmetic
from kvtier_operator.planning.units import size

_BITS_PER_BYTE = 8


def active_parameters(geometry: Geometry) -> Arithmetic | None:
    """From the model's configuration, else as if all of its weights computed; None where nothing tells."""
    if geometry.arithmetic is not None:
        return geometry.arithmetic
    if geometry.weights_bytes is None:
        return None
    each = geometry.parameter_bits / _BITS_PER_BYTE
    parameters = int(geometry.weights_bytes / each)
    return Arithmetic(
        parameters, f"{size(geometry.weights_bytes)} of weights / {each:g} B, all for every token"
    )
