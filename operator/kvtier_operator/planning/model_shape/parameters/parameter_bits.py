"""Bits of one parameter in a checkpoint, by which its weights' bytes tell how many parameters there are."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.planning.model_shape.config.checkpoint import quantization_of
from kvtier_operator.planning.model_shape.config.fields import ConfigFields

PLAIN_BITS: Final = 16
_FLOAT32_BITS: Final = 32
_BITS_FIELDS: Final = ("bits", "w_bit", "weight_bits", "num_bits")
_BY_NAME: Final = (("fp4", 4), ("w4", 4), ("int4", 4), ("awq", 4), ("gptq", 4), ("fp8", 8), ("int8", 8))
"""What is in the name of a method or an algorithm."""


def parameter_bits(config: ConfigFields, computes_in: str) -> int:
    """Of the most of them, scales left out.

    Args:
        config: The model's config.json, with what stands beside it.
        computes_in: The dtype that it is published in; empty if not known.
    """
    quantization = quantization_of(config)
    if not quantization:
        return _FLOAT32_BITS if computes_in == "float32" else PLAIN_BITS
    return _said(quantization) or _named(quantization) or PLAIN_BITS


def _said(quantization: Mapping[str, Any]) -> int | None:
    """A number of bits, beside the method or of a group of layers' weights (compressed-tensors)."""
    groups = quantization.get("config_groups")
    within = groups.values() if isinstance(groups, Mapping) else ()
    weights = [group.get("weights") for group in within if isinstance(group, Mapping)]
    parts = (quantization, *(part for part in weights if isinstance(part, Mapping)))
    said = (part.get(name) for part in parts for name in _BITS_FIELDS)
    return next((bits for bits in said if type(bits) is int and bits > 0), None)


def _named(quantization: Mapping[str, Any]) -> int | None:
    inner = quantization.get("quantization")
    parts = (inner, quantization) if isinstance(inner, Mapping) else (quantization,)
    if quantization.get("load_in_4bit") is True:
        return 4
    said = [str(part.get(name)).lower() for part in parts for name in ("quant_algo", "quant_method")]
    return next((bits for text in said for word, bits in _BY_NAME if word in text), None)
