"""Whether the layers and weights of what drafts tokens are counted."""

from typing import Final

from kvtier_operator.planning.arguments.extra_args import FIELD
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import count, many
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("draft-known", FIELD)


def draft_known(given: CheckInput) -> CheckResult:
    """A draft's layers take their part of every tier, and its weights theirs of memory and disk."""
    draft = given.geometry.draft
    if draft is None:
        return _VERDICTS.passed("no speculative decoding")
    name = f" {draft.speculation.model}" if draft.speculation.model else ""
    place = draft.speculation.place("model", "method")
    what_to_do = "; give its shape in spec.model.draftGeometry, and the weights of both in spec.model.weights"
    corrects = (
        f"plans {count(given.tiers.cpu.tokens)} tokens in the CPU tier, and has the picker follow what "
        "running engines say"
    )
    if not draft.source:
        return _VERDICTS.warn(
            "DraftUnknown",
            f"nothing describes the draft{name}, so its layers and weights are not counted{what_to_do}",
            by_itself=corrects,
            field=place,
        )
    if draft.is_estimate:
        return _VERDICTS.warn(
            "DraftEstimated",
            f"nothing describes the draft{name}, so {draft.source} is counted for it{what_to_do}",
            by_itself=corrects,
            field=place,
        )
    if draft.weights_bytes is None and given.spec.model.weights is None:
        return _VERDICTS.warn(
            "DraftWeightsUnknown",
            f"the size of the draft's weights{name} is not known; give those of both in spec.model.weights",
            by_itself="counts the model's alone",
            field=place,
        )
    layers = f"{many(draft.layers, 'layer')} with a cache" if draft.layers else "no layers with a cache"
    return _VERDICTS.passed(f"{layers} ({draft.source})")
