"""Ready: the other conditions in one."""

from collections.abc import Sequence
from typing import Final

from kvtier_operator.reconcile.facts.condition import UntimedCondition, false_condition, true_condition

TYPE: Final = "Ready"
_NEEDED: Final = ("Accepted", "EnginesReady", "RouterReady")
"""Sizes that contradict each other are part of Accepted. A namespace or nodes without room keep new pods from
starting: then EnginesReady or RouterReady is False too, and quotes the cause."""
_BESIDE: Final = {"EnginesReady": ("BudgetFits", "NodesFit"), "RouterReady": ("BudgetFits",)}


def ready(untimed_conditions: Sequence[UntimedCondition]) -> UntimedCondition:
    """True where the spec is accepted and engines and router are ready; else the first reason why not."""
    by_type = {each.type: each for each in untimed_conditions}
    failing = [by_type[name] for name in _NEEDED if not by_type[name].is_true]
    if not failing:
        return true_condition(
            TYPE, "Ready", f"{by_type['EnginesReady'].message}; {by_type['RouterReady'].message}"
        )
    first = failing[0]
    beside = [by_type[name] for name in _BESIDE.get(first.type, ()) if by_type[name].status == "False"]
    hints = "".join(f"; {each.type}: {_first_part(each.message)}" for each in beside)
    return false_condition(TYPE, first.reason, f"{first.type}: {first.message}{hints}")


def _first_part(message: str) -> str:
    """The first part of another condition's message, which has the rest."""
    begun, _, rest = message.partition("; ")
    return f"{begun}; ..." if rest else begun
