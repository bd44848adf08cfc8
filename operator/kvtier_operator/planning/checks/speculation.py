"""Whether what drafts tokens is supported, and its layers and weights are counted."""

from collections.abc import Iterator
from typing import Final

from kvtier_operator.api.spec.command_line import FIELD
from kvtier_operator.planning.arguments.speculation import GONE_FROM_NEWER, WITHOUT_LAYERS, Method
from kvtier_operator.planning.backends.engine_image import engine_minor
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.model_shape.layers.draft import Draft
from kvtier_operator.planning.model_shape.shape import LayerKind
from kvtier_operator.planning.units import count, many
from kvtier_operator.planning.verdict import CheckResult

_WITHOUT_DRAFT: Final = (WITHOUT_LAYERS - GONE_FROM_NEWER - {Method.CUSTOM_CLASS}) | {
    Method.MTP,
    Method.DSPARK,
}
"""Methods that need no model beside the one that is served."""
_COUNTED_BY_THE_DRAFT: Final = frozenset({Method.MTP, Method.DSPARK})
"""Methods whose number of tokens vLLM takes from a draft of its own where it is not given."""
_REMOVED_IN: Final = 33


@check(FIELD)
def speculation_supported(parts: CheckInput) -> CheckResult:
    """What vLLM refuses at start (config/speculative.py, v1/spec_decode/draft_model.py)."""
    draft = parts.geometry.draft
    if draft is None:
        return speculation_supported.passed("no speculative decoding")
    if faults := [*_draft_faults(parts, draft)]:
        return speculation_supported.reject_each("SpeculationNotSupported", faults)
    method = draft.speculation.method
    minor = engine_minor(parts.spec, parts.observed)
    if method in GONE_FROM_NEWER and (minor is None or minor >= _REMOVED_IN):
        field = draft.speculation.place("method", "model")
        message = f"vLLM 0.{_REMOVED_IN} has no method {method} any more: take another"
        if minor is not None:
            return speculation_supported.reject("MethodRemoved", message, field=field)
        return speculation_supported.warn("MethodRemoved", message, field=field)
    return speculation_supported.passed(f"method {method}")


def _draft_faults(parts: CheckInput, draft: Draft) -> Iterator[tuple[str, str]]:
    """Item and what is wrong with it."""
    asked, ranks = draft.speculation, parts.spec.engine.tensor_parallel_size
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
                f"{parts.spec.model.name} has no layers for multi-token prediction that vLLM knows; name a "
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
    own = parts.geometry.shape.vocabulary
    if asked.method is Method.DRAFT_MODEL and own and draft.vocabulary and own != draft.vocabulary:
        yield (
            asked.place("model"),
            (
                f"the draft has a vocabulary of {draft.vocabulary:,} tokens and the model one of {own:,}: "
                "take a draft of the same"
            ),
        )
    accepted = {ranks} if asked.method is Method.DRAFT_MODEL else {1, ranks}
    if asked.draft_ranks is not None and asked.draft_ranks not in accepted:
        choice = " or ".join(map(str, sorted(accepted)))
        yield (
            asked.place("draft_tensor_parallel_size"),
            f"draft_tensor_parallel_size {asked.draft_ranks} must be {choice} (tensorParallelSize {ranks})",
        )


@check(FIELD)
def draft_known(parts: CheckInput) -> CheckResult:
    """A draft's layers take their part of every tier, and its weights theirs of memory and disk."""
    draft = parts.geometry.draft
    if draft is None:
        return draft_known.passed("no speculative decoding")
    name = f" {draft.speculation.model}" if draft.speculation.model else ""
    place = draft.speculation.place("model", "method")
    what_to_do = "; give its shape in spec.model.draftGeometry, and the weights of both in spec.model.weights"
    corrects = (
        f"plans {count(parts.tiers.cpu.tokens)} tokens in the CPU tier, and has the picker follow what "
        "running engines say"
    )
    if not draft.source:
        return draft_known.warn(
            "DraftUnknown",
            f"nothing describes the draft{name}, so its layers and weights are not counted"
            f"{_fewer(parts)}{what_to_do}",
            by_itself=corrects,
            field=place,
        )
    if draft.is_estimate:
        return draft_known.warn(
            "DraftEstimated",
            f"nothing describes the draft{name}, so kvtier counts {draft.source}{_more(parts)}{what_to_do}",
            by_itself=corrects,
            field=place,
        )
    if draft.unknown_architecture:
        return draft_known.warn(
            "DraftArchitectureUnknown",
            f"vLLM 0.32 and 0.33 have no class of the draft's {draft.unknown_architecture}, and start only "
            "where an image of your own has one; look at `architectures` of its config.json",
            field=place,
        )
    if draft.weights_bytes is None and parts.spec.model.weights is None:
        return draft_known.warn(
            "DraftWeightsUnknown",
            f"the size of the draft's weights{name} is not known; give those of both in spec.model.weights",
            by_itself="counts the model's alone",
            field=place,
        )
    layers = f"{many(draft.layers, 'layer')} with a cache" if draft.layers else "no layers with a cache"
    return draft_known.passed(f"{layers} ({draft.source})")


def _fewer(parts: CheckInput) -> str:
    """What a draft that is not counted may cost: beside ordinary attention no latent is stored once."""
    ranks = parts.spec.engine.tensor_parallel_size
    if ranks == 1 or not parts.geometry.stored_once:
        return ""
    return (
        " (if it has ordinary attention, every rank stores the latent, which costs the tier up to "
        f"{ranks - 1}/{ranks} of its tokens)"
    )


def _more(parts: CheckInput) -> str:
    """What a draft costs that is taken to have ordinary attention."""
    ranks = parts.spec.engine.tensor_parallel_size
    if ranks == 1 or parts.geometry.mla or not parts.geometry.keeps(LayerKind.MLA):
        return ""
    return (
        f": beside ordinary attention every rank stores the latent, which costs the tier up to {ranks - 1}/"
        f"{ranks} of its tokens; a draft that keeps a latent too costs none of that"
    )
