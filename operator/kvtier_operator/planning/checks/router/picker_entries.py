"""Whether the picker's LRU capacities and weights are what the resource means."""

from typing import Final

from kvtier_operator.api.spec.router import Weights
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.router.router_plan import router_warnings
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("picker-entries", "spec.router.version")


def picker_entries(given: CheckInput) -> CheckResult:
    """What this flavour and version of the picker cannot do as the resource asks."""
    warnings = router_warnings(given.resource, given.geometry, given.tiers)
    if unread := _unread(given):
        why = f"weighs nothing, for {given.picker.title} has no such scorer"
        lines = [f"{field} {why}: leave it out, or set spec.router.flavor to builtin" for field in unread]
        return _VERDICTS.warn(
            "WeightUnread",
            "; ".join((*lines, *warnings)),
            by_itself="weighs the other scorers alone",
            field=unread[0],
        )
    if warnings:
        return _VERDICTS.warn(
            "PickerLimits", "; ".join(warnings), by_itself="configures what this version can do"
        )
    return _VERDICTS.passed(
        f"{given.router.flavor} {given.router.version}: one entry stands for "
        f"{given.router.tokens_per_entry} tokens"
    )


def _unread(given: CheckInput) -> list[str]:
    """Fields of weights that somebody gave, for the API server fills in the others, and no scorer reads."""
    usual, weights = Weights().by_scorer(), given.spec.router.weights.by_scorer()
    return [
        f"spec.router.weights.{Weights.model_fields[name].alias}"
        for name in given.router.unread
        if weights[name] != usual[name]
    ]
