"""Methods of quantisation that vLLM has, as `make generate` wrote them down; spelt with hyphens."""

from functools import cache
from typing import Final

from kvtier_operator.planning.model_shape.config.engine_data import generated_table

# What vLLM reads as another method (layers/quantization/inc/inc.py, override_quantization_method).
_OTHER_NAMES: Final = frozenset({"auto-round", "intel/auto-round"})


def has_method(name: str) -> bool:
    """Whether vLLM loads checkpoints of this method, or takes it as --quantization."""
    return name in _names("methods") or name in _OTHER_NAMES


def is_deprecated(name: str) -> bool:
    """Whether vLLM loads this method with --allow-deprecated-quantization alone."""
    return name in _names("deprecated")


def computes_in_bfloat16_alone(name: str) -> bool:
    """Whether vLLM refuses float16 beside this method."""
    return name in _names("bfloat16_alone")


@cache
def _names(kind: str) -> frozenset[str]:
    return frozenset(name.replace("_", "-") for name in generated_table("quantization")[kind])
