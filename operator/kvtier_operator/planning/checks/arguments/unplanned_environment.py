"""Environment variables of vLLM with which an engine keeps something else than is planned."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("unplanned-environment", "spec.engine.env")
_NO_LATENTS: Final = "VLLM_MLA_DISABLE"
_OFF: Final = "0"


def unplanned_environment(given: CheckInput) -> CheckResult:
    """What vLLM reads before anything that the plan says."""
    for variable in given.spec.engine.env:
        if variable.name == _NO_LATENTS and variable.value != _OFF and given.geometry.mla:
            return _VERDICTS.reject(
                "UnplannedVariable",
                f"{_NO_LATENTS} keeps the heads that a latent expands to, and the plan counts latents: "
                "remove it",
                field=f"spec.engine.env[{variable.name}]",
            )
    return _VERDICTS.passed("no variable that changes what an engine keeps")
