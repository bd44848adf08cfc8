"""Whether pickers see that several names are one model."""

from typing import Final

from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.units import many
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VERDICTS: Final = Verdicts("served-names", "spec.model.servedNames")


def served_names(given: CheckInput) -> CheckResult:
    """A picker's prefixes begin with the name that a request has; what engines tell has the first name."""
    first, *others = given.spec.model.names
    if not others:
        return _VERDICTS.passed(f"clients ask for {first}")
    if given.spec.router.kv_events:
        why = f"which know the engines' blocks by {first} alone: requests by another name are spread by load"
    else:
        why = "which take each for a model of its own: what was asked by one is not looked for by another"
    return _VERDICTS.warn(
        "NamesCountedApart",
        f"{many(len(others) + 1, 'name')} are one model to engines and their tiers, and not to pickers, "
        f"{why}; have clients that share prompts ask by one name",
    )
