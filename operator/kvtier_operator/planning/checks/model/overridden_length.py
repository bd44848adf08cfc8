"""Overrides of a model's configuration that change how long its sequences are."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.planning.arguments.extra_args import object_of
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.model_shape.config.overrides import OPTION
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("overridden-length", "spec.engine.maxModelLen")
_SCALING: Final = frozenset({"rope_scaling", "rope_parameters"})


def overridden_length(given: CheckInput) -> CheckResult:
    """With scaled positions vLLM works out a longest sequence of its own (config/model.py)."""
    engine = given.spec.engine
    scaled = sorted(_names(object_of(engine.extra_args, OPTION)) & _SCALING)
    if not scaled or engine.max_model_len is not None:
        return _VERDICTS.passed("the longest sequence is known")
    longest = given.geometry.max_position_tokens
    return _VERDICTS.warn(
        "SequenceNotKnown",
        f"{scaled[0]} in {OPTION} changes the longest sequence, which is planned with "
        f"{'nothing' if longest is None else f'{longest:,} tokens'}: set it to the one that you want",
    )


def _names(overrides: Mapping[str, Any]) -> set[str]:
    return set(overrides).union(
        *(_names(value) for value in overrides.values() if isinstance(value, Mapping))
    )
