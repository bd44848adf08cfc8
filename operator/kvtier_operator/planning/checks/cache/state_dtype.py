"""Whether vLLM keeps the states of linear attention in the dtype that it is told."""

from collections.abc import Iterator
from typing import Final

from kvtier_operator.planning.arguments.extra_args import value_of
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.kv_cache.split import RECURRENT_DTYPE, STATE_DTYPE
from kvtier_operator.planning.model_shape.shape import Recurrence
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("state-dtype", "spec.engine.extraArgs")
_CHOICES: Final = ("auto", "float32", "float16", "bfloat16")
_OF_KDA: Final = ("auto", "float32", "bfloat16")


def state_dtype(given: CheckInput) -> CheckResult:
    """With another vLLM does not start (config/cache.py, MambaDType; mamba_utils.py, kda_state_dtype)."""
    if fault := next(_faults(given), None):
        return _VERDICTS.reject("StateDtypeNotSupported", fault)
    return _VERDICTS.passed("states are kept in a dtype that vLLM takes")


def _faults(given: CheckInput) -> Iterator[str]:
    states = (group.state for group in given.geometry.groups)
    kda = any(state is not None and state.recurrence is Recurrence.KDA for state in states)
    for option, choices in ((STATE_DTYPE, _CHOICES), (RECURRENT_DTYPE, _OF_KDA if kda else _CHOICES)):
        dtype = value_of(given.spec.engine.extra_args, option)
        if dtype is not None and dtype not in choices:
            of_model = " for the states of this model" if choices is _OF_KDA else ""
            yield f"vLLM takes no {option} {dtype}{of_model}: give {', '.join(choices[:-1])} or {choices[-1]}"
