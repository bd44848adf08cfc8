"""Whether vLLM drafts tokens as the resource asks."""

from collections.abc import Iterator
from typing import Final

from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.model_shape.draft import Draft
from kvtier_operator.planning.plan import CheckResult
from kvtier_operator.planning.speculation import FIELD, GONE_FROM_NEWER, WITHOUT_LAYERS, Method

_VERDICTS: Final = Verdicts("speculation-supported", FIELD)
_WITHOUT_DRAFT: Final = (WITHOUT_LAYERS - GONE_FROM_NEWER - {Method.CUSTOM_CLASS}) | {
    Method.MTP,
    Method.DSPARK,
}
"""Methods that need no model beside the one that is served."""
_COUNTED_BY_THE_DRAFT: Final = frozenset({Method.MTP, Method.DSPARK})
"""Methods whose number of tokens vLLM takes from a draft of its own where it is not given."""


def speculation_supported(given: CheckInput) -> CheckResult:
    """What vLLM refuses at start (config/speculative.py, v1/spec_decode/draft_model.py)."""
    draft = given.geometry.draft
    if draft is None:
        return _VERDICTS.passed("no speculative decoding")
    if faults := [(FIELD, fault) for fault in _faults(given, draft)]:
        return _VERDICTS.reject_each("SpeculationNotSupported", faults)
    method = draft.speculation.method
    if method in GONE_FROM_NEWER:
        return _VERDICTS.warn("MethodRemoved", f"vLLM 0.33 has no method {method} any more: take another")
    return _VERDICTS.passed(f"method {method}")


def _faults(given: CheckInput, draft: Draft) -> Iterator[str]:
    asked, ranks = draft.speculation, given.spec.engine.tensor_parallel_size
    if asked.method is Method.EXTRACT_HIDDEN_STATES:
        yield (
            "extract_hidden_states drafts nothing: it is for a connector that takes the hidden states, in "
            "place of the one that keeps the tiers; remove it"
        )
    if draft.predictors == 0:
        yield (
            f"{given.spec.model.name} has no layers for multi-token prediction that vLLM knows; name a draft "
            "with `model`, or take another method"
        )
    if asked.model is None and asked.method not in _WITHOUT_DRAFT:
        yield f"method {asked.method} needs a draft: give `model` in the speculative configuration"
    if asked.tokens is None and (asked.model is None or asked.method not in _COUNTED_BY_THE_DRAFT):
        yield "vLLM does not start without `num_speculative_tokens` in the speculative configuration: give it"
    steps = draft.predictors or 1
    if asked.tokens is not None and asked.tokens > steps and asked.tokens % steps:
        yield (
            f"num_speculative_tokens {asked.tokens} must be a multiple of the {steps} layers with which the "
            "model predicts"
        )
    accepted = {ranks} if asked.method is Method.DRAFT_MODEL else {1, ranks}
    if asked.draft_ranks is not None and asked.draft_ranks not in accepted:
        choice = " or ".join(map(str, sorted(accepted)))
        yield f"draft_tensor_parallel_size {asked.draft_ranks} must be {choice} (tensorParallelSize {ranks})"
