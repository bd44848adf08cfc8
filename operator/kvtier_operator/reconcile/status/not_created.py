"""Why engines or picker have no Deployment: seldom is it only not there yet."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kvtier_operator.reconcile.apply.failure import ApplyFailure
from kvtier_operator.reconcile.status.condition import UntimedCondition, false_condition

_REASON: Final = "NotCreated"


def not_created(type_: str, what: str) -> UntimedCondition:
    """A condition that is False, of which `with_cause` knows more.

    Args:
        type_: The condition.
        what: Whose it is, such as `the picker's`.
    """
    return false_condition(type_, _REASON, f"{what} Deployment is not there")


def with_cause(
    said: UntimedCondition, held_up_by: Sequence[ApplyFailure], *, rejected: bool
) -> UntimedCondition:
    """Says what keeps it, where that is the other part's: nothing is made before all can be.

    Args:
        said: What was said without a look at the other part.
        held_up_by: Objects of the other part that could not be applied.
        rejected: Whether the spec is, so that nothing is made.
    """
    if said.reason != _REASON:
        return said
    if rejected:
        return replace(said, message=f"{said.message}, and is not made while Accepted is False")
    if held_up_by:
        causes = "; ".join(each.message for each in held_up_by)
        return false_condition(
            said.type, held_up_by[0].reason, f"{said.message}, and is not made before all can be: {causes}"
        )
    return replace(said, message=f"{said.message} yet")
