"""How fast an engine computes a prompt, as far as a plan can tell."""

from typing import Final

from kvtier_operator.api.spec.engine import Device, EngineSpec
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.weights.device_weights import active_parameters

_PREFILL_SHARE: Final = 0.4
"""What prefill reaches of a GPU's dense bf16."""
_FLOPS_PER_RANK: Final = {
    Device.GPU: 4e14,  # H100: 40 % of 989 TFLOP/s dense bf16
    # two cores: 15,400 tokens of a Llama of 73 million parameters in 12.06 s
    Device.CPU: 1.9e11,
}
_OPERATIONS_PER_PARAMETER: Final = (
    2  # a multiply and an add for each weight and token (Kaplan et al., 2001.08361)
)


def prefill_token_s(engine: EngineSpec, geometry: Geometry) -> float | None:
    """Seconds that one engine computes a token in; None where nothing tells its parameters.

    By the parameters alone: long prompts take longer, for attention.
    """
    computing = active_parameters(geometry)
    if computing is None:
        return None
    flops = _FLOPS_PER_RANK[engine.device] if engine.gpu is None else _PREFILL_SHARE * engine.gpu.flops
    return _OPERATIONS_PER_PARAMETER * computing.parameters / (flops * engine.tensor_parallel_size)
