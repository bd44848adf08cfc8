"""Bits of one parameter in a checkpoint, which tie its weights' bytes to how many parameters there are."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.planning.model_shape.config.checkpoint import quantization_of
from kvtier_operator.planning.model_shape.config.fields import ConfigFields

PLAIN_BITS: Final = 16
_FLOAT32_BITS: Final = 32
_BITS_FIELDS: Final = ("bits", "w_bit", "weight_bits", "num_bits")
_BY_NAME: Final = (("fp4", 4), ("w4", 4), ("int4", 4), ("awq", 4), ("gptq", 4), ("fp8", 8), ("int8", 8))
"""What is in the name of a method or an algorithm."""
_SCALES: Final = {"fp8": 0.0, "mxfp4": 0.25, "FP8": 0.0, "NVFP4": 0.5}
"""Bits of a parameter's part of a scale, by method, or by ModelOpt's algorithm."""
_BY_GROUPS: Final = ("awq", "gptq", "compressed-tensors", "auto-round")
"""Methods with a scale for each group of weights."""
_GROUP_BITS, _GROUP_SIZE = 4, 128
_SCALE_BITS, _FLOAT_SCALE_BITS = 16, 8


def parameter_bits(config: ConfigFields, computes_in: str) -> int:
    """Of the most of them, scales left out.

    Args:
        config: The model's config.json, with what stands beside it.
        computes_in: The dtype that it is published in; empty if not known.
    """
    quantization = quantization_of(config)
    if not quantization:
        return _FLOAT32_BITS if computes_in == "float32" else PLAIN_BITS
    return _explicit(quantization) or _named(quantization) or PLAIN_BITS


def expert_bits(config: ConfigFields) -> float | None:
    """Of one of a routed expert, with its part of the scales; None where not known.

    Args:
        config: The model's config.json, with what stands beside it.
    """
    quantization = quantization_of(config)
    if not quantization:
        return PLAIN_BITS
    scale_bits = _scale_bits(quantization)
    if scale_bits is None:
        return None
    return (_explicit(quantization) or _named(quantization) or _GROUP_BITS) + scale_bits


def _explicit(quantization: Mapping[str, Any]) -> int | None:
    """A number of bits, beside the method or of a group of layers' weights."""
    parts = (quantization, *_groups(quantization))
    numbers = (part.get(name) for part in parts for name in _BITS_FIELDS)
    return next((bits for bits in numbers if type(bits) is int and bits > 0), None)


def _named(quantization: Mapping[str, Any]) -> int | None:
    if quantization.get("load_in_4bit") is True:
        return 4
    parts = (_inner(quantization), quantization)
    methods = [str(part.get(name)).lower() for part in parts for name in ("quant_algo", "quant_method")]
    return next((bits for text in methods for word, bits in _BY_NAME if word in text), None)


def _scale_bits(quantization: Mapping[str, Any]) -> float | None:
    method = str(quantization.get("quant_method", "")).lower().replace("_", "-")
    algorithm = _inner(quantization).get("quant_algo")
    if (known := _SCALES.get(str(algorithm or method))) is not None:
        return known
    if method not in _BY_GROUPS:
        return None
    weights = next(iter(_groups(quantization)), quantization)
    size = weights.get("group_size", _GROUP_SIZE)
    if size is None or (type(size) is int and size <= 0):
        return 0.0  # one scale for all
    scale_bits = _FLOAT_SCALE_BITS if weights.get("type") == "float" else _SCALE_BITS
    return scale_bits / size if type(size) is int else None


def _inner(quantization: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where ModelOpt names its algorithm."""
    inner = quantization.get("quantization")
    return inner if isinstance(inner, Mapping) else quantization


def _groups(quantization: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What is said of the weights of each group of layers (compressed-tensors)."""
    groups = quantization.get("config_groups")
    within = groups.values() if isinstance(groups, Mapping) else ()
    weights = [group.get("weights", group) for group in within if isinstance(group, Mapping)]
    return [part for part in weights if isinstance(part, Mapping)]
