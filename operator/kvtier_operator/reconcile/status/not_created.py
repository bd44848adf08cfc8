"""Why engines or picker have no Deployment."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kvtier_operator.reconcile.apply.failure import ApplyFailure
from kvtier_operator.reconcile.facts.condition import UntimedCondition, false_condition

NOT_CREATED: Final = "NotCreated"


def not_created(type_: str, what: str) -> UntimedCondition:
    """A condition that is False, for want of a Deployment; `with_cause` adds why.

    Args:
        type_: Type of the condition.
        what: Whose Deployment it is, such as `the picker's`.
    """
    return false_condition(type_, NOT_CREATED, f"{what} Deployment is not there")


def with_cause(
    condition: UntimedCondition, held_up_by: Sequence[ApplyFailure], *, rejected: bool
) -> UntimedCondition:
    """Adds why a Deployment is not created: nothing is, before objects of both components can be.

    Args:
        condition: The condition without a look at the other component.
        held_up_by: Objects of the other component that could not be applied.
        rejected: Whether the spec is rejected, so that nothing is created.
    """
    if condition.reason != NOT_CREATED:
        return condition
    if rejected:
        return replace(condition, message=f"{condition.message}, and is not made while Accepted is False")
    if held_up_by:
        causes = "; ".join(each.message for each in held_up_by)
        return false_condition(
            condition.type,
            held_up_by[0].reason,
            f"{condition.message}, and is not made before all can be: {causes}",
        )
    return replace(condition, message=f"{condition.message} yet")
