"""Whether the picker's LRU capacities are what the resource means."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.router.picker_config import router_warnings
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("picker-entries", "spec.router.version")


def picker_entries(given: CheckInput) -> CheckResult:
    """What this flavour and version of the picker cannot do as the resource asks."""
    warnings = router_warnings(given.resource, given.geometry, given.tiers)
    if warnings:
        return _VERDICTS.warn(
            "PickerLimits", "; ".join(warnings), by_itself="configures what this version can do"
        )
    return _VERDICTS.passed(
        f"{given.router.flavor} {given.router.version}: one entry stands for "
        f"{given.router.tokens_per_entry} tokens"
    )
