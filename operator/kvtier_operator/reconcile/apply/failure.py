"""An object that could not be applied, as a condition reports it."""

from dataclasses import dataclass

from kvtier_operator.planning.base.names import Component


@dataclass(frozen=True, slots=True)
class ApplyFailure:
    """Why one object could not be applied.

    Attributes:
        component: Whose object it is: EnginesReady reports the engines' failures, RouterReady all others.
        reason: CamelCase.
        message: One line, naming the object and what to do.
    """

    component: Component
    reason: str
    message: str
