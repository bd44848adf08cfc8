"""Whether vLLM drafts tokens as the resource asks."""

from collections.abc import Iterator
from typing import Final

from kvtier_operator.planning.arguments.extra_args import FIELD
from kvtier_operator.planning.arguments.speculation import GONE_FROM_NEWER, WITHOUT_LAYERS, Method
from kvtier_operator.planning.base.vllm_minor import vllm_minor
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.model_shape.layers.draft import Draft
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("speculation-supported", FIELD)
_WITHOUT_DRAFT: Final = (WITHOUT_LAYERS - GONE_FROM_NEWER - {Method.CUSTOM_CLASS}) | {
    Method.MTP,
    Method.DSPARK,
}
"""Methods that need no model beside the one that is served."""
_COUNTED_BY_THE_DRAFT: Final = frozenset({Method.MTP, Method.DSPARK})
"""Methods whose number of tokens vLLM takes from a draft of its own where it is not given."""
_REMOVED_IN: Final = 33


def speculation_supported(given: CheckInput) -> CheckResult:
    """What vLLM refuses at start (config/speculative.py, v1/spec_decode/draft_model.py)."""
    draft = given.geometry.draft
    if draft is None:
        return _VERDICTS.passed("no speculative decoding")
    if faults := [*_faults(given, draft)]:
        return _VERDICTS.reject_each("SpeculationNotSupported", faults)
    method = draft.speculation.method
    minor = vllm_minor(given.spec.engine.image)
    if method in GONE_FROM_NEWER and (minor is None or minor >= _REMOVED_IN):
        field = draft.speculation.place("method", "model")
        message = f"vLLM 0.{_REMOVED_IN} has no method {method} any more: take another"
        if minor is not None:
            return _VERDICTS.reject("MethodRemoved", message, field=field)
        return _VERDICTS.warn("MethodRemoved", message, field=field)
    return _VERDICTS.passed(f"method {method}")


def _faults(given: CheckInput, draft: Draft) -> Iterator[tuple[str, str]]:
    """Item and what is wrong with it."""
    asked, ranks = draft.speculation, given.spec.engine.tensor_parallel_size
    if asked.method is Method.EXTRACT_HIDDEN_STATES:
        yield (
            asked.place("method"),
            (
                "extract_hidden_states drafts nothing: it is for a connector that takes the hidden states, "
                "in place of the one that keeps the tiers; remove it"
            ),
        )
    if draft.predictors == 0:
        yield (
            asked.place("method"),
            (
                f"{given.spec.model.name} has no layers for multi-token prediction that vLLM knows; name a "
                "draft with `model`, or take another method"
            ),
        )
    if asked.model is None and asked.method not in _WITHOUT_DRAFT:
        yield (
            asked.place("method"),
            f"method {asked.method} needs a draft: give `model` in the speculative configuration",
        )
    if asked.tokens is None and (asked.model is None or asked.method not in _COUNTED_BY_THE_DRAFT):
        yield (
            asked.place("method", "model"),
            "vLLM does not start without `num_speculative_tokens` in the speculative configuration: give it",
        )
    steps = draft.predictors or 1
    if asked.tokens is not None and asked.tokens > steps and asked.tokens % steps:
        yield (
            asked.place("num_speculative_tokens"),
            (
                f"num_speculative_tokens {asked.tokens} must be a multiple of the {steps} layers with which "
                "the model predicts"
            ),
        )
    accepted = {ranks} if asked.method is Method.DRAFT_MODEL else {1, ranks}
    if asked.draft_ranks is not None and asked.draft_ranks not in accepted:
        choice = " or ".join(map(str, sorted(accepted)))
        yield (
            asked.place("draft_tensor_parallel_size"),
            f"draft_tensor_parallel_size {asked.draft_ranks} must be {choice} (tensorParallelSize {ranks})",
        )
