"""What the model's weights take of the device, and how many of them a token passes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Final

from kvtier_operator.api.spec.engine import EngineSpec
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.model_shape.shape import Arithmetic
from kvtier_operator.planning.units import size

_OPTIONS: Final = ("--quantization", "-q", "--quantization-config")
_OFFLOADING: Final = ("--cpu-offload-gb", "--offload-group-size")
"""With them vLLM keeps some of the weights in the host's memory, whole layers up to a bound."""
_WHOLE: Final = Fraction(1)
_ONLINE: Final[Mapping[str, Fraction]] = {
    "fp8": Fraction(1, 2),
    "fp8_per_tensor": Fraction(1, 2),
    "fp8_per_block": Fraction(1, 2),
    "fp8_per_channel": Fraction(1, 2),
    "mxfp8": Fraction(33, 64),
    "mxfp4": Fraction(17, 64),
}
"""What is left of 16 bits, by method, where a checkpoint is not quantised (vLLM 0.32 and 0.33,
config/quantization.py, _ONLINE_SHORTHANDS; layers/quantization/fp8.py)."""
_LEAST: Final = Fraction(1, 4)


@dataclass(frozen=True, slots=True)
class RankWeights:
    """Bytes of weights on one GPU.

    Attributes:
        least_bytes: Where a plan cannot know, the least that it can be.
        most_bytes: And the most; the same where it is known.
    """

    least_bytes: int
    most_bytes: int

    @property
    def known(self) -> bool:
        """Whether a plan can know it."""
        return self.least_bytes == self.most_bytes


def rank_weights(engine: EngineSpec, geometry: Geometry) -> RankWeights | None:
    """What one GPU holds of the weights; None where their size is not known.

    Routed experts are divided over all GPUs of a pod, with expert parallelism and without (layers/fused_moe/
    config.py, flatten_tp_across_dp_and_pcp); the rest is on every data-parallel engine.
    """
    weights, experts = geometry.weights_bytes, geometry.experts_bytes
    if weights is None:
        return None
    ranks, engines = engine.tensor_parallel_size, engine.data_parallel_size
    least, most = _left(engine, geometry)
    if engines > 1 and experts is None:
        held = RankWeights(ceil(weights * least / (ranks * engines)), ceil(weights * most / ranks))
    else:
        shared = experts or 0 if engines > 1 else 0
        of_rank = Fraction(weights - shared, ranks) + Fraction(shared, ranks * engines)
        held = RankWeights(ceil(of_rank * least), ceil(of_rank * most))
    return replace(held, least_bytes=0) if engine.extra_args.last(*_OFFLOADING) else held


def online_quantization(engine: EngineSpec, geometry: Geometry) -> str:
    """The method that vLLM quantises the weights by as it loads them; empty where it does not."""
    if geometry.shape.is_quantised:
        return ""
    return next((found for name in _OPTIONS if (found := engine.extra_args.value(name))), "")


def _left(engine: EngineSpec, geometry: Geometry) -> tuple[Fraction, Fraction]:
    """The least and the most that is left of the checkpoint's bytes."""
    method = online_quantization(engine, geometry)
    if not method:
        return _WHOLE, _WHOLE
    left = _ONLINE.get(method, _LEAST)
    certain = method in _ONLINE and geometry.shape.is_quantised is False
    return left, left if certain else _WHOLE


_BITS_PER_BYTE = 8


def active_parameters(geometry: Geometry) -> Arithmetic | None:
    """From the model's configuration, else as if all of its weights computed; None where nothing tells."""
    if geometry.shape.arithmetic is not None:
        return geometry.shape.arithmetic
    if geometry.weights_bytes is None:
        return None
    each = geometry.shape.parameter_bits / _BITS_PER_BYTE
    parameters = int(geometry.weights_bytes / each)
    return Arithmetic(
        parameters, f"{size(geometry.weights_bytes)} of weights / {each:g} B, all for every token"
    )
