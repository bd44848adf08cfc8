"""Whether the backend can serve a model whose layers keep different things."""

from typing import Final

from kvtier_operator.api.backend import Backend
from kvtier_operator.planning.arguments.extra_args import place_of, value_of
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.geometry import LayerKind
from kvtier_operator.planning.kv_cache.kept_states import STEP
from kvtier_operator.planning.units import count
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("hybrid-models", "spec.backend")
_SMALLEST_STEP_TOKENS: Final = 2048
"""Of vLLM's defaults, which depend on the GPU (engine/arg_utils.py, get_batch_defaults)."""


def hybrid_models(given: CheckInput) -> CheckResult:
    """What LMCache asks of hybrid models, in the engine and as a server."""
    if given.geometry.hybrid and given.spec.backend is Backend.LMCACHE:
        return _in_the_engine(given)
    if given.spec.backend is Backend.LMCACHE_MP and _has_states(given):
        return _beside_the_engine(given)
    return _VERDICTS.passed("the backend serves this model's layers")


def _in_the_engine(given: CheckInput) -> CheckResult:
    """It turns vLLM's hybrid cache manager off (config/vllm.py, SupportsHMA).

    Linear-attention models then fail at start; sliding-window layers keep every token instead of a window.
    """
    if _has_states(given):
        return _VERDICTS.reject(
            "HybridModelNotSupported",
            "LMCache in the engine cannot serve models with linear-attention layers: vLLM stops at "
            "start; set spec.backend to KVTier or LMCacheMP",
        )
    return _VERDICTS.warn(
        "WindowsKeptInFull",
        "LMCache in the engine keeps every token of sliding-window layers, on the device too: fewer "
        "tokens fit; spec.backend KVTier keeps a window once a prefix, LMCacheMP a part with each chunk",
        by_itself="counts all of them in the sizes",
    )


def _beside_the_engine(given: CheckInput) -> CheckResult:
    """A step must compute a whole block (lmcache 0.5.6, validate_mamba_step_alignment)."""
    block = given.geometry.block_tokens
    said = value_of(given.spec.engine.extra_args, STEP)
    if said is not None and said.isdigit() and int(said) < block:
        return _VERDICTS.reject(
            "StepBelowBlock",
            f"{STEP} {said} is less than a block of this model, {count(block)} tokens, and LMCache's "
            f"connector refuses to start: give {count(block)} or more",
            field=place_of(given.spec.engine.extra_args, STEP),
        )
    if said is None and block > _SMALLEST_STEP_TOKENS:
        return _VERDICTS.warn(
            "StepMayBeBelowBlock",
            f"a block of this model has {count(block)} tokens, and LMCache's connector does not start where "
            f"a step takes fewer: give {STEP} {block} or more in spec.engine.extraArgs (vLLM's default is "
            f"{count(_SMALLEST_STEP_TOKENS)} on smaller GPUs)",
        )
    return _VERDICTS.passed(f"chunks of {count(given.backend.tokens_per_chunk)} tokens are whole blocks")


def _has_states(given: CheckInput) -> bool:
    return any(group.kind is LayerKind.STATE for group in given.geometry.groups)
