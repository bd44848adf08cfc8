"""Whether the backend is on its way out."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("lmcache-deprecated", "spec.backend")


def deprecated_backend(given: CheckInput) -> CheckResult:
    """What its own project says of it."""
    if deprecated := given.traits.deprecated:
        return _VERDICTS.warn(deprecated.reason, deprecated.message, by_itself=deprecated.by_itself)
    return _VERDICTS.passed(f"backend {given.spec.backend} is current")
