"""Whether the backend tells adapters of one model apart."""

from typing import Final

from kvtier_operator.planning.backends import any_backend_that
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.verdict import CheckResult, Verdicts
from kvtier_operator.planning.weights.adapters import ENABLE, adapters_of

_VERDICTS: Final = Verdicts("adapter-keys", "spec.backend")


def adapter_keys(given: CheckInput) -> CheckResult:
    """The adapter is in vLLM's hashes (v1/core/kv_cache_utils.py), and not in every backend's own keys."""
    backend = given.spec.backend
    if adapters_of(given.spec) is None:
        return _VERDICTS.passed("no adapters")
    if not given.traits.tells_adapters_apart:
        return _VERDICTS.warn(
            "AdaptersShareKeys",
            f"{ENABLE}: the keys of backend {backend} leave the adapter out, so a prompt to one adapter is "
            "answered from what another has computed of the same tokens, and wrongly; set spec.backend to "
            f"{any_backend_that(lambda traits: traits.tells_adapters_apart)}"
            f"{given.traits.adapters_otherwise}",
        )
    return _VERDICTS.passed(f"backend {backend} keeps apart what adapters compute")
