"""LMCache inside the engine is on its way out."""

from typing import Final

from kvtier_operator.api.backend import Backend
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("lmcache-deprecated", "spec.backend")


def lmcache_deprecated(given: CheckInput) -> CheckResult:
    """LMCache 0.5 deprecates its in-process connector (LMCache #4025, #5147)."""
    if given.spec.backend is Backend.LMCACHE:
        return _VERDICTS.warn(
            "InProcessDeprecated",
            "LMCache deprecates its in-process connector for its server; set spec.backend to LMCacheMP "
            "or KVTier",
        )
    return _VERDICTS.passed(f"backend {given.spec.backend} is current")
