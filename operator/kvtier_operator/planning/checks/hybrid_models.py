"""Whether the backend can serve a model whose layers keep different things."""

from typing import Final

from kvtier_operator.api.resource import Backend
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.geometry import LayerKind
from kvtier_operator.planning.plan import CheckResult

_VERDICTS: Final = Verdicts("hybrid-models", "spec.backend")


def hybrid_models(given: CheckInput) -> CheckResult:
    """LMCache in the engine turns vLLM's hybrid cache manager off (config/vllm.py, SupportsHMA).

    Linear-attention models then fail at start; sliding-window layers keep every token instead of a window.
    """
    if given.spec.backend is not Backend.LMCACHE or not given.geometry.hybrid:
        return _VERDICTS.passed("the backend serves this model's layers")
    if any(group.kind is LayerKind.STATE for group in given.geometry.groups):
        return _VERDICTS.reject(
            "HybridModelNotSupported",
            "LMCache in the engine cannot serve models with linear-attention layers: vLLM stops at "
            "start; set spec.backend to KVTier or LMCacheMP",
        )
    return _VERDICTS.warn(
        "WindowsKeptInFull",
        "LMCache in the engine keeps every token of sliding-window layers, on the device too: fewer "
        "tokens fit; spec.backend KVTier or LMCacheMP keeps the windows only",
    )
