"""Whether the backend can serve a model whose layers keep different things."""

from typing import Final

from kvtier_operator.planning.arguments.extra_args import field_path_of, value_of
from kvtier_operator.planning.backends.kept_states import STEP
from kvtier_operator.planning.backends.traits import NoHybridManager
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.model_shape.geometry import LayerKind
from kvtier_operator.planning.units import count
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("hybrid-models", "spec.backend")
_SMALLEST_STEP_TOKENS: Final = 2048
"""Of vLLM's defaults, which depend on the GPU (engine/arg_utils.py, get_batch_defaults)."""


def hybrid_models(given: CheckInput) -> CheckResult:
    """Some backends go without vLLM's cache manager for such models, some ask for steps of whole blocks."""
    without = given.traits.no_hybrid_manager
    if given.geometry.hybrid and without:
        return _without_manager(given, without)
    if given.traits.whole_blocks and _has_states(given):
        return _step_of_blocks(given)
    return _VERDICTS.passed("the backend serves this model's layers")


def _without_manager(given: CheckInput, without: NoHybridManager) -> CheckResult:
    """VLLM turns its hybrid cache manager off (config/vllm.py, SupportsHMA).

    Linear-attention models then fail at start; sliding-window layers keep every token instead of a window.
    """
    if _has_states(given):
        return _VERDICTS.reject(
            "HybridModelNotSupported",
            f"{given.traits.title} cannot serve models with linear-attention layers: vLLM stops at "
            f"start; set spec.backend to {without.for_states}",
        )
    return _VERDICTS.warn(
        "WindowsKeptInFull",
        f"{given.traits.title} keeps every token of sliding-window layers, on the device too: fewer "
        f"tokens fit; spec.backend {without.for_windows}",
        by_itself="counts all of them in the sizes",
    )


def _step_of_blocks(given: CheckInput) -> CheckResult:
    """A step must compute a whole block."""
    block = given.geometry.block_tokens
    step = value_of(given.spec.engine.extra_args, STEP)
    if step is not None and step.isdigit() and int(step) < block:
        return _VERDICTS.reject(
            "StepBelowBlock",
            f"{STEP} {step} is less than a block of this model, {count(block)} tokens, and "
            f"{given.traits.project}'s connector refuses to start: give {count(block)} or more",
            field=field_path_of(given.spec.engine.extra_args, STEP),
        )
    if step is None and block > _SMALLEST_STEP_TOKENS:
        return _VERDICTS.warn(
            "StepMayBeBelowBlock",
            f"a block of this model has {count(block)} tokens, and {given.traits.project}'s connector does "
            f"not start where a step takes fewer: give {STEP} {block} or more in spec.engine.extraArgs "
            f"(vLLM's default is {count(_SMALLEST_STEP_TOKENS)} on smaller GPUs)",
        )
    return _VERDICTS.passed(f"chunks of {count(given.backend.tokens_per_chunk)} tokens are whole blocks")


def _has_states(given: CheckInput) -> bool:
    return any(group.kind is LayerKind.STATE for group in given.geometry.groups)
