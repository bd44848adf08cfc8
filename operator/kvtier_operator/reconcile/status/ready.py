"""Ready: the others in one."""

from collections.abc import Sequence
from typing import Final

from kvtier_operator.reconcile.status.verdict import Verdict, fails, holds

TYPE: Final = "Ready"
_NEEDED: Final = ("Accepted", "EnginesReady", "RouterReady")
"""BudgetFits is part of Accepted; NodesFit speaks of pods to come, which EnginesReady misses."""


def ready(verdicts: Sequence[Verdict]) -> Verdict:
    """True where the spec is accepted and engines and router are ready; else the first reason why not."""
    by_type = {each.type: each for each in verdicts}
    failing = [by_type[name] for name in _NEEDED if not by_type[name].true]
    if not failing:
        return holds(TYPE, "Ready", f"{by_type['EnginesReady'].message}; {by_type['RouterReady'].message}")
    first = failing[0]
    hint = ""
    nodes = by_type.get("NodesFit")
    if first.type == "EnginesReady" and nodes is not None and nodes.status == "False":
        hint = f"; NodesFit: {nodes.message}"
    return fails(TYPE, first.reason, f"{first.type}: {first.message}{hint}")
