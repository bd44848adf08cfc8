"""An object that could not be applied, as a condition tells it."""

from dataclasses import dataclass

from kvtier_operator.planning.objects.names import Component


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one object is not as it should be.

    Attributes:
        component: Whose object it is; the engines' failures are EnginesReady's, all others RouterReady's.
        reason: CamelCase.
        message: One line, naming the object and what to do.
    """

    component: Component
    reason: str
    message: str
