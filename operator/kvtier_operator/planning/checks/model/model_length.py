"""Whether vLLM lets a sequence be as long as the resource asks."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.model_shape.config.overrides import OPTION
from kvtier_operator.planning.units import count
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("model-length", "spec.engine.maxModelLen")
_ALLOWED_BY: Final = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
_ON: Final = frozenset({"1", "true"})


def model_length(given: CheckInput) -> CheckResult:
    """Beyond what config.json says vLLM ends at start (config/model.py, _get_and_verify_max_len).

    Where only the resource describes the model, nothing tells how long its sequences may be.
    """
    asked, most = given.spec.engine.max_model_len, given.geometry.most_position_tokens
    if asked is None or most is None or asked <= most:
        return _VERDICTS.passed("no longer than the model's own")
    if _is_allowed(given):
        return _VERDICTS.passed(f"{count(asked)} tokens, by {_ALLOWED_BY}")
    return _VERDICTS.reject(
        "LongerThanModel",
        f"{count(asked)} tokens are more than the {count(most)} of {given.geometry.source}, and vLLM ends at "
        f"start: set it to at most {count(most)}; or, for a model whose positions can be scaled, add its "
        f'rope_parameters and "max_position_embeddings": {asked} as {OPTION} to spec.engine.extraArgs',
    )


def _is_allowed(given: CheckInput) -> bool:
    """Whether the engine's environment has vLLM take any length, or may: what a source holds is not known."""
    variables = [variable for variable in given.spec.engine.env if variable.name == _ALLOWED_BY]
    return any(
        variable.value_from is not None or (variable.value or "").strip().lower() in _ON
        for variable in variables
    )
