"""Whether vLLM is known to serve the model's class."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("architecture-known", "spec.model.name")


def architecture_known(given: CheckInput) -> CheckResult:
    """What vLLM has no class of it looks for in the Transformers library, whose version only an image has."""
    if name := given.geometry.unknown_architecture:
        return _VERDICTS.warn(
            "ArchitectureUnknown",
            f"vLLM 0.32 and 0.33 have no class of {name}: they serve it where the Transformers library or "
            "the model's own code has one, and start nowhere else; look at `architectures` of config.json",
            by_itself="plans what config.json says",
        )
    return _VERDICTS.passed("vLLM has a class of the model, or the resource names none")
